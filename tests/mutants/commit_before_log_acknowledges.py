"""The leader commits a change, and shows it to readers, before the log acknowledges it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.executor.writer_connection import PendingBatch

TESTS = ["tests/unit/sql/engine/test_leadership.py::test_nothing_is_visible_before_the_log_has_acknowledged_it"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def commit_first(self: Leadership, pending: PendingBatch) -> None:
        end = self.writer.position + len(pending.records)
        await self._thread.run(self.writer.commit, pending, end)
        if pending.records:
            await self._log.append_entry(pending.records, preamble=pending.preamble)

    patch(Leadership, "_append_and_commit", commit_first)
