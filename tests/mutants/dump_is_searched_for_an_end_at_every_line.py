"""The import of a dump asks SQLite at each line of a long text whether the statement ends there, which reads the text again each time."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.backup import sqlite_dump

TESTS = ["tests/unit/sql/backup/test_sqlite_dump.py::test_the_lines_of_a_long_text_are_not_searched_for_its_end_again_and_again"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(sqlite_dump, "_inside_after", lambda line, inside: b"")
