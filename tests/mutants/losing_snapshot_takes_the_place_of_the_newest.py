"""A snapshot is listed although another was listed since its copy was made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triplicate.log.core import snapshot_list

TESTS = [
    "tests/unit/log/upkeep/test_log_snapshots.py::test_of_two_attempts_at_once_one_is_listed",
    "tests/unit/sql/storage/test_sqlite_snapshots.py::test_of_two_nodes_that_make_a_snapshot_at_once_one_is_listed",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    add = snapshot_list.add
    patch(snapshot_list, "add", lambda listed, snapshot, after: add(replace(listed, snapshots=listed.good), snapshot, listed.newest_id))
