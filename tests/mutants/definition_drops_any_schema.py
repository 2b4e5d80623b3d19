"""CREATE, ALTER and DROP ignore the schema of a name."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.ddl import definition_rewriter

TESTS = ["tests/unit/sql/pg/ddl/test_definition_rewriter.py::test_nothing_is_dropped_from_another_schema"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(definition_rewriter, "_other_schema", lambda _tokens: None)
