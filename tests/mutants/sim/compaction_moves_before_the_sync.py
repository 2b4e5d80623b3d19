"""Compaction points the index at its copies and deletes the old log before the copies are synced."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.entry_log_writer import EntryLogWriter
    from triplicate.bookie.storage.run_copier import RunCopier

    def sync_nothing(self: EntryLogWriter) -> dict[int, int]:
        if self._open is not None:
            self._write(self._open)
            self.sizes[self._open.number] = self._open.synced_bytes = self._open.end
        self._finished.clear()
        sizes, self.sizes = self.sizes, {}
        return sizes

    def commit(self: RunCopier) -> None:
        if self._moved:
            self._index.move_runs(self._log, self._moved, sync_nothing(self._writer).items())
            self._moved, self._moved_bytes = [], 0

    patch(RunCopier, "_commit", commit)
