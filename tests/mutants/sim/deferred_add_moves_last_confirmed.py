"""An entry that bookies acknowledged without a sync counts as confirmed."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client.write.add_pipeline import AddPipeline

    confirm = AddPipeline.confirm

    def broken(self: AddPipeline) -> None:
        confirm(self)
        if self._tracker.last_add_confirmed > self.last_add_confirmed:
            self._move_last_confirmed(self._tracker.last_add_confirmed, self._acknowledged_bytes)

    patch(AddPipeline, "confirm", broken)
