"""A flush writes the entry log without syncing it, then makes the index durable and moves the mark."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/test_bookie_crashes.py::test_a_crash_at_any_step_of_a_flush_loses_nothing",
    "tests/crash/test_points.py::test_a_few_crash_points_lose_nothing",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.entry_log_writer import EntryLogWriter

    def forget_the_sync(self: EntryLogWriter) -> dict[int, int]:
        if self._open is not None:
            self._write(self._open)
            self.sizes[self._open.number] = self._open.end
        sizes, self.sizes = self.sizes, {}
        return sizes

    patch(EntryLogWriter, "sync", forget_the_sync)
