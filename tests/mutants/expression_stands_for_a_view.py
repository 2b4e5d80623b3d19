"""Accesses of a common table expression with the name of a view count as those of the view, which its owner may make."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/executor/test_statement_rights.py::test_a_statement_needs_rights_for_what_it_names[view's name]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.interface import StatementKind
    from triplicate.sql.core.rights import Rights
    from triplicate.sql.executor.statement_rights import StatementRights

    original = StatementRights.of

    def of(self: StatementRights, sql: str, kind: StatementKind) -> Rights:
        views = self._schema().schema.views
        named = [view for view in views if f"with {view} as" in sql]
        return frozenset(right._replace(definer=named[0]) if named else right for right in original(self, sql, kind))

    patch(StatementRights, "of", of)
