"""A SQLite file is imported with texts that are no UTF-8, or that hold the character NUL."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup import plain_files

TESTS = ["tests/unit/sql/backup/test_plain_files.py::test_content_that_a_database_refuses_is_named"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(plain_files, "_fault_of", lambda text: "")
