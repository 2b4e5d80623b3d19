"""The text behind a cast in a default is taken for a part of the name of the type, and is lost."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.ddl import defaults

TESTS = ["tests/unit/sql/pg/ddl/test_definition_rewriter.py::test_a_default_that_is_no_constant_has_postgresqls_meaning"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(defaults, "type_end", lambda tokens, _start: len(tokens))
