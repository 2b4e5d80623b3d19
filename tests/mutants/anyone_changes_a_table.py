"""A role that does not own a table may alter and drop it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/engine/test_session_rights.py::test_only_the_owner_changes_a_table_and_its_rights_go_with_it"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.executor import statement_rights

    def ownership(schema: object, kind: str, name: str) -> None:
        return None

    patch(statement_rights, "_ownership", ownership)
