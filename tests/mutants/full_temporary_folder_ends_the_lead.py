"""A leader takes each full disk for its own, a full folder of temporary files too."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.storage import local_copies

TESTS = ["tests/unit/sql/hosting/test_database_node.py::test_a_statement_whose_temporary_files_find_no_room_fails_alone"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(local_copies, "_room", lambda connection: 0)
