"""A follower changes tables without the functions of views, so that its copy diverges."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup import work_file
from triplicate.sql.engine import local_copy
from triplicate.sql.storage.sqlite_file import open_follower

TESTS = [
    "tests/unit/sql/engine/test_local_copy.py::test_a_copy_applies_a_change_of_tables_beside_a_view_over_a_view",
    "tests/unit/sql/backup/test_work_file.py::test_a_file_takes_a_change_of_tables_beside_a_view_over_a_view",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(local_copy, "open_applier_connection", open_follower)
    patch(work_file, "open_applier_connection", open_follower)
