"""An upsert of a run must not change a row that an earlier statement of the run has stored."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.change_capture import ChangeCapture

TESTS = ["tests/unit/sql/executor/test_writer_connection.py::test_one_statement_runs_for_many_rows"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ChangeCapture, "is_upsert", False)
