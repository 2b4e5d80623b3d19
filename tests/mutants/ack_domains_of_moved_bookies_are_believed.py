"""A writer uses an ensemble of which some entries can never be acknowledged, because the bookies that stay were moved."""

from collections.abc import Callable, Sequence

from triplicate.ledger import AckDomains, PlacementRules

TESTS = [
    "tests/unit/ledger/placement/test_ensemble_choice.py::test_an_ensemble_whose_bookies_moved_is_refused_with_their_places",
    "tests/unit/client/write/test_ledger_writer_ack_domains.py::test_a_ledger_whose_bookies_are_in_one_rack_is_not_taken_up",
    "tests/unit/client/write/test_ledger_writer_ack_domains.py::test_a_change_that_leaves_some_entries_in_one_rack_is_not_made",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def believe(self: PlacementRules, ensemble: Sequence[str]) -> AckDomains | None:
        return self.ack_domains(ensemble)

    patch(PlacementRules, "spanned_domains", believe)
