"""A flush moves the journal's mark before it writes entries and index."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.journal_format import GroupPosition
    from triplicate.bookie.core.write_cache import Frozen
    from triplicate.bookie.storage.storage import Storage

    write_flush = Storage._write_flush

    def mark_first(self: Storage, frozen: Frozen, positions: Sequence[GroupPosition]) -> None:
        for journal, position in zip(self.journals, positions, strict=False):
            journal.write_mark(position, self.flush_number)
        write_flush(self, frozen, positions)

    patch(Storage, "_write_flush", mark_first)
