"""A writer whose entries find no further fault domain, but an ack quorum, neither replaces the failed bookie in time nor ends."""

from collections.abc import Callable

from triplicate.ledger import DomainWriteTracker, WriteTracker

TESTS = [
    "tests/unit/ledger/test_domain_trackers.py::test_the_loss_of_the_last_bookie_of_a_domain_endangers_the_ledger",
    "tests/unit/client/write/test_ledger_writer_ack_domains.py::test_a_writer_without_another_rack_ends_with_the_reason",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(DomainWriteTracker, "is_endangered", WriteTracker.is_endangered)
