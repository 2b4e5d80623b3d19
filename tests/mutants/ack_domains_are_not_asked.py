"""A writer acknowledges an entry as soon as any ack quorum has it, although it must be in several fault domains."""

from collections.abc import Callable

from triplicate.ledger import AdvDomainWriteTracker, AdvWriteTracker, DomainWriteTracker, WriteTracker

TESTS = [
    "tests/unit/ledger/test_domain_trackers.py::test_an_ack_quorum_in_one_domain_confirms_nothing",
    "tests/unit/ledger/test_domain_trackers.py::test_single_acknowledgements_say_when_confirmation_is_due",
    "tests/unit/ledger/test_domain_trackers.py::test_chosen_ids_are_acknowledged_in_several_domains",
    "tests/property/test_domain_trackers.py::test_an_entry_is_confirmed_by_an_ack_quorum_in_enough_domains",
    "tests/process/test_ack_domains.py::test_an_entry_is_acknowledged_when_bookies_of_two_racks_have_it",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    for name in ("acknowledge_next", "_confirmed_prefix", "_has_ack_quorum"):
        patch(DomainWriteTracker, name, getattr(WriteTracker, name))
    patch(AdvDomainWriteTracker, "_has_ack_quorum", AdvWriteTracker._has_ack_quorum)
