"""A value compared with a column of the catalogue is looked up without conversion to the column's type: '23' finds no type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triplicate.sql.catalogue.relations import Catalogue
from triplicate.sql.catalogue.virtual_tables import CatalogueReader
from triplicate.sql.core.interface import Row

TESTS = ["tests/unit/sql/test_catalogue.py::test_a_value_of_another_type_is_compared_as_sqlite_does"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def rows(self: CatalogueReader, catalogue: Catalogue, table: str, wanted: Sequence[tuple[int, Any]]) -> Sequence[Row]:
        found: Sequence[Row] = catalogue.rows[table]
        for column, value in wanted:
            found = [row for row in found if row[column] == value]
        return found

    patch(CatalogueReader, "rows", rows)
