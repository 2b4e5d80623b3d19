"""A cast to text is removed from the definitions of a dump also where its operand is no text."""

from __future__ import annotations

from collections.abc import Callable, Collection

from triplicate.sql.backup import dump_expressions, dump_schema
from triplicate.sql.core.lexer import Statement

TESTS = [
    "tests/unit/sql/backup/test_dump_expressions.py::test_casts_of_texts_to_text_are_removed_and_no_others",
]


class _Every(frozenset[str]):
    def __contains__(self, name: object) -> bool:
        return True


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = dump_expressions.without_plain_casts

    def every(statement: Statement, text_columns: Collection[str] = ()) -> Statement:
        return original(statement, _Every())

    patch(dump_expressions, "without_plain_casts", every)
    patch(dump_schema, "without_plain_casts", every)
