"""A flush syncs what it wrote to the first ledger directory, and moves the mark for all of them (BookKeeper issue 3329)."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.entry_log_writer import EntryLogWriter

    sync = EntryLogWriter.sync

    def sync_the_first(self: EntryLogWriter) -> dict[int, int]:
        log = self._open
        if log is None or log.directory == self._places._directories[0]:
            return sync(self)
        self._write(log)
        self.sizes[log.number] = log.synced_bytes = log.end
        self._finished.clear()
        sizes, self.sizes = self.sizes, {}
        return sizes

    patch(EntryLogWriter, "sync", sync_the_first)
