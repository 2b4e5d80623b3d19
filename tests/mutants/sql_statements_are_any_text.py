"""A statement that is no text, or has a zero character, is given to SQLite, whose binding fails with errors that are not SQL's."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/engine/test_in_process_session.py::test_a_text_that_is_no_statement_for_sqlite_is_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine import in_process_session

    patch(in_process_session, "check_text", lambda sql: None)
