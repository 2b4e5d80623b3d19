"""A session that asks for a time before the oldest snapshot reads that snapshot, which has transactions of later."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup import past_databases

TESTS = [
    "tests/unit/sql/backup/test_past_databases.py::test_a_time_before_the_oldest_snapshot_is_refused_and_does_not_read_that_snapshot",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(past_databases, "_begins_after", lambda facts, target: False)
