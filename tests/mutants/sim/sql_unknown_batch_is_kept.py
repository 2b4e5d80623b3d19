"""A leader keeps changes whose append has an unknown outcome, instead of rolling them back."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import RecordTooLarge
    from triplicate.sql.engine.leadership import Leadership
    from triplicate.sql.executor.statement_batches import PendingBatch

    original = Leadership._append_confirming

    async def append_confirming(self: Leadership, pending: PendingBatch) -> int:
        end = self.writer.sent_position + len(pending.records)
        try:
            return await original(self, pending)
        except RecordTooLarge:
            raise
        except BaseException:
            self._thread._worker.run(self.writer.commit, pending, end)
            raise

    patch(Leadership, "_append_confirming", append_confirming)
