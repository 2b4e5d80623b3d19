"""Enough fault domains confirm an entry that has no ack quorum."""

from collections.abc import Callable

from triplicate.ledger import DomainWriteTracker

TESTS = [
    "tests/unit/ledger/test_domain_trackers.py::test_many_domains_do_not_replace_the_ack_quorum",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    with_quorum = DomainWriteTracker._confirmed_prefix

    def without_quorum(self: DomainWriteTracker) -> int:
        ack_quorum, self._ack_quorum = self._ack_quorum, 1
        try:
            return with_quorum(self)
        finally:
            self._ack_quorum = ack_quorum

    patch(DomainWriteTracker, "_confirmed_prefix", without_quorum)
