"""Of a striped ledger, only the bookies of the first entry are checked."""

from collections.abc import Callable

from triplicate.ledger.placement.placement_rules import PlacementRules

TESTS = [
    "tests/unit/ledger/placement/test_ensemble_choice.py::test_the_write_sets_of_a_striped_ledger_keep_the_rule",
    "tests/property/test_ensemble_choice.py::test_a_new_ensemble_keeps_the_rules_if_any_does",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def first(rules: PlacementRules, size: int) -> tuple[tuple[int, ...], ...]:
        return (tuple(range(min(size, rules.write_quorum))),)

    patch(PlacementRules, "sets_of", first)
