"""GRANT and REVOKE take the name of a table without its schema, so those of another schema change rights on the table of public."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.syntax.token_cursor import TokenCursor

TESTS = ["tests/unit/sql/pg/syntax/test_role_statement.py::test_what_is_not_supported_is_refused_by_name_without_a_password"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(TokenCursor, "relation", lambda self: self.dotted().last)
