"""The new ensemble is used while its metadata is still being written (BookKeeper's issue 1591)."""

from collections.abc import Callable

from triplicate.client.write.ensemble_changer import EnsembleChanger
from triplicate.ledger import EnsembleSegment

TESTS = [
    "tests/unit/client/test_absent_bookies.py::test_a_replacement_counts_only_once_the_metadata_names_it",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def broken(self: EnsembleChanger, ensemble: tuple[str, ...]) -> None:
        tracker = self._tracker
        if not tracker.changing:
            tracker.begin_change()
        before, proposed = self.current.value.last_segment, EnsembleSegment(tracker.last_add_confirmed + 1, ensemble)
        await self._take_over(self.current, proposed)
        self.current = await self._write(before, proposed)

    patch(EnsembleChanger, "_change", broken)
