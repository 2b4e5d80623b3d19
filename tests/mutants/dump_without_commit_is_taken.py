"""A dump of SQLite's that ends before its COMMIT is taken for a whole one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.sql.backup import sqlite_dump

TESTS = ["tests/unit/sql/backup/test_sqlite_dump.py::test_a_damaged_dump_is_refused_with_its_line"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    statements = sqlite_dump._statements

    def completed(*arguments: Any) -> Any:
        line = 0
        for line, statement in statements(*arguments):
            yield line, statement
        yield line, b"commit" if b"COMMIT" not in statement else b""

    patch(sqlite_dump, "_statements", completed)
