"""A SQLite file is imported with values that a database would have refused."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup import plain_files

TESTS = ["tests/unit/sql/backup/test_plain_files.py::test_content_that_a_database_refuses_is_named"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(plain_files, "_refused_values", lambda host, connection: [])
