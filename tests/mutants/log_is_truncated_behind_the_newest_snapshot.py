"""The log is truncated behind the newest snapshot, so no copy can be built if that one is damaged."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import snapshot_keeper

TESTS = [
    "tests/unit/sql/storage/test_sqlite_snapshots.py::test_the_log_is_truncated_behind_the_older_of_the_last_two",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(snapshot_keeper, "truncation_offset", lambda listed: listed.good[-1].position if listed.good else None)
