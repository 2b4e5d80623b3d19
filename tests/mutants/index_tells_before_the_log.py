"""A flush records runs and states in the index before it writes them into the entry log."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/storage/test_index_behind_logs.py::test_a_kill_at_any_step_of_a_flush_leaves_an_index_that_agrees_with_the_logs",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.entry_log_writer import EntryLogWriter
    from triplicate.bookie.storage.ledger_storage import LedgerStorage, WrittenFlush

    sync, tell = EntryLogWriter.sync, LedgerStorage.write_index

    def promise(self: EntryLogWriter) -> dict[int, int]:
        """The lengths that the logs will have."""
        sizes, self.sizes = self.sizes, {}
        if self._open is not None:
            sizes[self._open.number] = self._open.end
        return sizes

    def tell_first(self: LedgerStorage, written: WrittenFlush) -> None:
        tell(self, written)
        sync(self.writer)

    patch(EntryLogWriter, "sync", promise)
    patch(LedgerStorage, "write_index", tell_first)
