"""The text of a statement is shown as it was sent, with the password in it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/pg/protocol/test_activity_rows.py::test_no_password_is_shown"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core import statement_statistics
    from triplicate.sql.core.lexer import Statement
    from triplicate.sql.pg.protocol import activity_rows

    def as_it_was_sent(statement: Statement) -> str:
        return statement.sql

    patch(statement_statistics, "text_without_constants", as_it_was_sent)
    patch(activity_rows, "text_without_constants", as_it_was_sent)
