"""SQLite may compute values of a gigabyte."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.storage import sqlite_file

TESTS = ["tests/unit/sql/pg/protocol/test_conversation_hostile_statements.py::test_no_statement_holds_the_loop"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(sqlite_file, "VALUE_BYTES", 10**9)
