"""An entry that bookies acknowledged without a sync counts as confirmed."""

from collections.abc import Callable

from triplicate.client.write.add_pipeline import AddPipeline

TESTS = [
    "tests/unit/client/write/test_force.py::test_adds_with_deferred_sync_are_acknowledged_and_only_force_confirms_them",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    confirm = AddPipeline.confirm

    def broken(self: AddPipeline) -> None:
        confirm(self)
        self._move_last_confirmed(self._tracker.last_add_confirmed, self._acknowledged_bytes)

    patch(AddPipeline, "confirm", broken)
