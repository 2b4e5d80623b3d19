"""Sessions get a notification before the log has acknowledged its transaction."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/sql/engine/test_leadership_notices.py::test_sessions_get_notices_once_the_log_has_acknowledged_and_the_rows_are_visible",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.leadership import Leadership
    from triplicate.sql.executor.statement_batches import PendingBatch

    append = Leadership._append

    async def eager(self: Leadership, pending: PendingBatch) -> int:
        self.notices.publish(self.writer.position, pending.notifications, list)
        return await append(self, pending)

    patch(Leadership, "_append", eager)
