"""A number that a column of jsonb stores is compared with the text of one."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/executor/test_scalars_jsonb.py::test_equal_values_are_equal"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.pg.analysis.type_resolution import TypeResolver

    patch(TypeResolver, "write_jsonb", staticmethod(lambda expression: None))
