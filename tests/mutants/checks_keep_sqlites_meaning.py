"""CHECK and generated columns are stored untranslated: LIKE ignores case, and numerics divide as integers."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.ddl.stored_expressions import StoredExpressions

TESTS = [
    "tests/unit/sql/pg/ddl/test_definition_rewriter.py::test_an_expression_has_postgresqls_meaning_in_sqlites_words",
    "tests/unit/sql/pg/ddl/test_definition_rewriter.py::test_an_expression_without_such_words_is_refused",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def as_written(_self: StoredExpressions, _start: int, _end: int, _edits: object, *, is_condition: bool) -> bool:
        return is_condition

    patch(StoredExpressions, "rewrite_span", as_written)
