"""A leader answers a statement without changes although it has not checked that it still leads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

KIND = "databases"
CHECKERS = ("registers_are_linearizable",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.leadership import Leadership
    from triplicate.sql.executor.statement_batches import PendingBatch

    async def acknowledge(self: Leadership, window: Any, group: Any) -> None:
        window.acknowledge(group)
        self._queue_changed.set()

    async def commit(self: Leadership, pending: PendingBatch) -> None:
        await self._commit_locally([pending], self.writer.position)

    patch(Leadership, "_confirm_group", acknowledge)
    patch(Leadership, "_confirm_unchanged", commit)
