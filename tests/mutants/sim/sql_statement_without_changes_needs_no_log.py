"""A leader answers a statement without changes although it has not checked that it still leads."""

from __future__ import annotations

from collections.abc import Callable

KIND = "databases"
CHECKERS = ("registers_are_linearizable",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.runtime import shielded
    from triplicate.sql.engine.leadership import Leadership
    from triplicate.sql.executor.writer_connection import PendingBatch

    original = Leadership._append_and_commit

    async def append_and_commit(self: Leadership, pending: PendingBatch) -> None:
        if pending.records:
            await original(self, pending)
        else:
            await shielded(self._thread.run(self.writer.commit, pending, self.writer.position))

    patch(Leadership, "_append_and_commit", append_and_commit)
