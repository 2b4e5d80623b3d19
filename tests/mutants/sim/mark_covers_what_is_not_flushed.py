"""The journal's mark moves to the journal's present end after a flush, not to its position at the flush's start."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "ledgers"

MOMENT_S = 0.3


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.write_cache import Frozen
    from triplicate.bookie.storage.flusher import FlushMark
    from triplicate.bookie.storage.storage import Storage

    write_frozen = Storage._write_frozen

    async def and_mark_later(self: Storage, frozen: Frozen, marks: Sequence[FlushMark]) -> None:
        await write_frozen(self, frozen, marks)
        clock = self._host.clock

        def mark() -> None:
            for journal in self.journals:
                if not journal.commit._closing:
                    journal.write_mark(journal.synced, self.flusher.flush_number)

        clock.call_at(clock.monotonic() + MOMENT_S, mark)

    patch(Storage, "_write_frozen", and_mark_later)
