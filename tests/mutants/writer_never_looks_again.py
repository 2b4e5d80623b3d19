"""A writer that found no replacement for a failed bookie does not search again."""

from collections.abc import Callable

from triplicate.errors import TriplicateError
from triplicate.ledger.ensemble_change import BookiesChanged, Command, EnsembleChange, Event

TESTS = [
    "tests/unit/client/write/test_ensemble_changer_absent_bookies.py::test_a_bookie_that_joins_takes_the_place_of_a_missing_one_from_a_later_entry_on",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    continue_without, step = EnsembleChange._continue_without, EnsembleChange.step

    def never_again(self: EnsembleChange, now: float, limit_s: float, error: TriplicateError) -> list[Command]:
        commands = continue_without(self, now, limit_s, error)
        self._search_at = now + 1000.0
        return commands

    def unnoticed(self: EnsembleChange, event: Event, now: float) -> None:
        if not isinstance(event, BookiesChanged):
            step(self, event, now)

    patch(EnsembleChange, "_continue_without", never_again)
    patch(EnsembleChange, "step", unnoticed)
