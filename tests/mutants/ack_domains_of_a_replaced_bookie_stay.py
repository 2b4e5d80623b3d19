"""A bookie that takes the place of another counts for the fault domain of that one."""

from collections.abc import Callable, Sequence

from triplicate.ledger import AckDomains, DomainWriteTracker, WriteTracker

TESTS = [
    "tests/unit/ledger/test_domain_trackers.py::test_a_replaced_bookie_brings_its_own_domain",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def keep(self: DomainWriteTracker, ensemble: Sequence[str], domains: AckDomains | None = None) -> list[int]:
        return WriteTracker.replace(self, ensemble)

    patch(DomainWriteTracker, "replace", keep)
