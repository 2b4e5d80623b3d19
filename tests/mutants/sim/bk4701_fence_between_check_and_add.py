"""An add is stored a moment after its check against the fence, as by another thread (BookKeeper issue 4701)."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary
from zlib import crc32

KIND = "ledgers"
CHECKERS = ("acknowledged_is_readable", "read_stays_readable", "closed_entries_have_their_copies")

HELD_UP_S = (0.0, 0.001, 0.02)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.ledger_table import LedgerHandle
    from triplicate.bookie.server.add_processor import AddProcessor
    from triplicate.bookie.server.dialects import Adds, Dialect
    from triplicate.wire import Status

    take = AddProcessor.admit
    free_at: WeakKeyDictionary[AddProcessor, float] = WeakKeyDictionary()

    def check_then_add(self: AddProcessor, adds: Adds, dialect: Dialect, handle: LedgerHandle) -> None:
        run, host = adds.run, self._requests._host
        status = self._requests.admit(handle, run.master_key, recovery=run.recovery, high_priority=run.high_priority)
        if status is not Status.OK:
            self.refuse(adds, dialect, status)
            return

        def add() -> None:
            fenced, handle.fenced = handle.fenced, False
            try:
                take(self, adds, dialect, handle)
                self.submit()
            finally:
                handle.fenced = fenced

        draw = crc32(f"{host.name} {run.ledger_id} {run.entry_ids[0]}".encode())
        # In order, as one thread would do it.
        due = max(host.clock.monotonic() + HELD_UP_S[draw % len(HELD_UP_S)], free_at.get(self, 0.0))
        free_at[self] = due
        host.clock.call_at(due, add)

    patch(AddProcessor, "admit", check_then_add)
