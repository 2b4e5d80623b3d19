"""A damaged snapshot is refused but not marked, so the log is truncated behind it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log import LogSnapshots

TESTS = [
    "tests/unit/sql/storage/test_sqlite_snapshots.py::test_a_damaged_snapshot_is_refused_marked_and_the_older_one_loaded",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def unmarked(self: LogSnapshots, snapshot_id: str, reason: str) -> bool:
        return True

    patch(LogSnapshots, "mark_damaged", unmarked)
