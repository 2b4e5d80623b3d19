"""REASSIGN OWNED and OWNER TO do not know the administrator under the name with which the catalogue shows it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.executor.role_statements import RoleStatements

TESTS = [
    "tests/unit/sql/executor/test_role_statements.py::test_tables_go_to_the_administrator_and_from_it_under_the_name_that_it_is_shown_with"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(RoleStatements, "_is_administrator", lambda self, name: False)
