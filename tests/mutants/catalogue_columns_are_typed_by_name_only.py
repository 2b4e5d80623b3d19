"""A column of the catalogue has the type of the last table that has a column of this name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from triplicate.sql.pg.rewrite import catalogue_queries, catalogue_types

TESTS = [
    "tests/unit/sql/pg/rewrite/test_catalogue_queries.py::test_the_tables_of_a_query_determine_the_types_of_its_columns_and_parameters",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    every = {name: oid for columns in catalogue_types.COLUMNS.values() for name, oid in columns.items()}

    def column_types(_tables: Iterable[str]) -> dict[str, int]:
        return every

    patch(catalogue_queries, "column_types", column_types)
