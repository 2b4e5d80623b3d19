"""The leader makes a snapshot though a follower could."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.replica import snapshot_keeper
from triplicate.replica.core import snapshot_policy

TESTS = [
    "tests/unit/sql/storage/test_sqlite_snapshots.py::test_a_follower_makes_the_snapshot_where_there_is_one",
    "tests/unit/replica/core/test_snapshot_policy.py::test_a_leader_waits_for_a_follower_whose_report_is_a_moment_old",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(snapshot_policy, "snapshot_rank", lambda *_: 0)
    patch(snapshot_keeper, "snapshot_rank", lambda name, position, members, leader, base: 0 if name == leader else None)
