"""The internal tables of roles are logged row by row as users' tables are, so that a change feed can show them."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/sql/executor/test_role_statements.py::test_the_log_has_roles_and_rights_as_settings_which_no_change_feed_shows",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.storage import sqlite_schema

    def is_internal(name: str) -> bool:
        return name.lower().startswith("triplicate_") and "role" not in name.lower()

    patch(sqlite_schema, "is_internal", is_internal)
