"""The journal's mark moves to the journal's present end after a flush, not to its position at the flush's start."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"

MOMENT_S = 0.3


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.write_cache import Frozen
    from triplicate.bookie.storage.storage import Storage

    flushed = Storage._flushed

    def and_mark_later(self: Storage, frozen: Frozen) -> None:
        flushed(self, frozen)
        clock = self._host.clock

        def mark() -> None:
            for journal in self.journals:
                if not journal.commit._closing:
                    journal.write_mark(journal.synced, self.flush_number)

        clock.call_at(clock.monotonic() + MOMENT_S, mark)

    patch(Storage, "_flushed", and_mark_later)
