"""The index is rebuilt from runs without the state records, so keys and fences are lost."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/test_bookie_crashes.py::test_a_lost_index_is_rebuilt_with_entries_and_fences",
    "tests/crash/test_points.py::test_a_few_crash_points_lose_nothing",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage import index_rebuild
    from triplicate.bookie.storage.entry_logs import LogContent
    from triplicate.runtime import Disk, Trace

    read_log = index_rebuild.try_read_log

    def without_states(disk: Disk, trace: Trace, number: int, path: str, *, with_states: bool) -> LogContent | None:
        return read_log(disk, trace, number, path, with_states=False)

    patch(index_rebuild, "try_read_log", without_states)
