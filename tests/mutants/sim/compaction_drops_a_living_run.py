"""Compaction omits the last run of each batch that it copies, and deletes the log."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.run_copier import RunCopier

    commit = RunCopier._commit

    def commit_without_the_last(self: RunCopier) -> None:
        lost = self._moved[-1][0] if len(self._moved) > 1 else None
        commit(self)
        if lost is not None:
            with self._index._transaction() as database:
                database.execute("DELETE FROM runs WHERE ledger = ? AND first = ?", (lost.ledger_id, lost.first))

    patch(RunCopier, "_commit", commit_without_the_last)
