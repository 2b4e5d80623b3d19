"""A writer that found no bookie in place of a failed one never looks again."""

from collections.abc import Callable

from triplicate.client.write.ensemble_changer import EnsembleChanger

TESTS = [
    "tests/unit/client/test_absent_bookies.py::test_a_bookie_that_joins_takes_the_place_of_a_missing_one_from_a_later_entry_on",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    go_on, change = EnsembleChanger._go_on_without, EnsembleChanger._bookies_change

    def never_again(self: EnsembleChanger, now: float) -> None:
        go_on(self, now)
        self._look_at = now + 1000.0

    async def unnoticed(self: EnsembleChanger) -> None:
        await change(self)
        self._look_at = self._clock.monotonic() + 1000.0

    patch(EnsembleChanger, "_go_on_without", never_again)
    patch(EnsembleChanger, "_bookies_change", unnoticed)
