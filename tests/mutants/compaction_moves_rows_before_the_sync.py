"""Compaction points the index at its copies before they are synced, and deletes the old log."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/storage/test_compaction.py::test_a_crash_at_any_step_of_a_compaction_loses_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.run_copier import RunCopier

    def unsynced(self: RunCopier) -> None:
        log = self._writer._open
        if self._moved and log is not None:
            self._writer._write(log)
            self._index.move_runs(self._log, self._moved, [(log.number, log.end)])
            self._moved, self._moved_bytes = [], 0

    patch(RunCopier, "_commit", unsynced)
