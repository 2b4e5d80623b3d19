"""The leader commits a change, and shows it to readers, before the log acknowledges it."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.leadership import Leadership
    from triplicate.sql.executor.writer_connection import PendingBatch

    async def commit_first(self: Leadership, pending: PendingBatch) -> None:
        sent = self._reads.send(self._clock.elapsed())
        end = self.writer.position + len(pending.records)
        await self._thread.run(self.writer.commit, pending, end)
        if pending.records:
            await self._log.append_entry(pending.records, preamble=pending.preamble)
        else:
            await self._log.noop()
        self._acknowledge(sent)
        self._finish_numbers(pending, committed=True)
        self.on_commit(self.writer.position, self.writer.schema_version)

    patch(Leadership, "_append_and_commit", commit_first)
