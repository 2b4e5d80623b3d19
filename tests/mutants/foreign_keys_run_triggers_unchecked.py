"""The rights of triggers that a foreign key's action runs in another table are not asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

TESTS = ["tests/unit/sql/executor/test_statement_rights.py::test_a_statement_needs_rights_for_what_it_names"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.executor import statement_rights

    def further_changes(self: object, relation: str, action: object) -> Iterator[object]:
        return iter(())

    patch(statement_rights._Schema, "further_changes", further_changes)
