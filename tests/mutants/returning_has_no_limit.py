"""RETURNING keeps rows of any size until the log has confirmed the change."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor import change_runner

TESTS = ["tests/unit/sql/executor/test_short_reads.py::test_the_rows_of_returning_have_a_limit"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(change_runner, "_returned", lambda cursor: cursor.fetchall())
