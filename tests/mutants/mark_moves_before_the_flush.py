"""A flush moves the journal's mark before entries and index are written and durable."""

from __future__ import annotations

from collections.abc import Callable, Sequence

TESTS = [
    "tests/simulation/test_losses.py::test_flushed_entries_survive_crashes_during_a_flush",
    "tests/unit/bookie/test_bookie_crashes.py::test_a_crash_at_any_step_of_a_flush_loses_nothing",
    "tests/crash/test_points.py::test_a_few_crash_points_lose_nothing",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.write_cache import Frozen
    from triplicate.bookie.storage.flusher import Flusher, FlushMark

    write = Flusher.write

    def mark_first(self: Flusher, frozen: Frozen, marks: Sequence[FlushMark]) -> None:
        for mark in marks:
            mark.journal.write_mark(mark.position, self.flush_number)
        write(self, frozen, marks)

    patch(Flusher, "write", mark_first)
