"""A leader keeps changes whose append has an unknown outcome, instead of rolling them back."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.errors import SqlError
    from triplicate.sql.engine.leadership import Leadership
    from triplicate.sql.executor.writer_connection import PendingBatch

    original = Leadership._append_and_commit

    async def append_and_commit(self: Leadership, pending: PendingBatch) -> None:
        try:
            await original(self, pending)
        except SqlError:
            raise
        except BaseException:
            self._thread._worker.run(self.writer.commit, pending, self.writer.position + len(pending.records))
            raise

    patch(Leadership, "_append_and_commit", append_and_commit)
