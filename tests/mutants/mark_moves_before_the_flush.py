"""A flush moves the journal's mark before it writes entries and index."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TESTS = ["tests/simulation/test_losses.py::test_flushed_entries_survive_crashes_during_a_flush"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.write_cache import Frozen
    from triplicate.bookie.storage.flusher import Flusher, FlushMark

    write = Flusher.write

    def mark_first(self: Flusher, frozen: Frozen, marks: Sequence[FlushMark]) -> None:
        for mark in marks:
            mark.journal.write_mark(mark.position, self.flush_number)
        write(self, frozen, marks)

    patch(Flusher, "write", mark_first)
