"""A foreign key in the catalogue does not name the index of the key to which it refers, so that pgjdbc finds no foreign keys."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.catalogue import relations, system_tables
from triplicate.sql.core.interface import Row, Value

TESTS = ["tests/unit/sql/test_catalogue.py::test_a_foreign_key_names_the_index_of_the_key_to_which_it_refers"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def system_row(table: str, **values: Value) -> Row:
        if values.get("contype") == "f":
            values["conindid"] = 0
        return original(table, **values)

    original = system_tables.system_row
    patch(relations, "system_row", system_row)
