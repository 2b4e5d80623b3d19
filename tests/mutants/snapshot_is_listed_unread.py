"""A snapshot is listed without reading it back from the bookies."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log import LogSnapshots, Snapshot

TESTS = [
    "tests/unit/sql/storage/test_sqlite_snapshots.py::test_a_snapshot_that_the_bookies_do_not_give_back_is_not_listed",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def believed(self: LogSnapshots, snapshot: Snapshot, *, rate_bytes_per_s: int = 0) -> None:
        return

    patch(LogSnapshots, "verify", believed)
