"""The catalogue is built once per connection and never follows a change of the schema."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.catalogue.relations import Catalogue, build
from triplicate.sql.catalogue.schema_facts import read_facts
from triplicate.sql.catalogue.virtual_tables import CatalogueReader

TESTS = ["tests/unit/sql/test_catalogue.py::test_rows_follow_the_schema_of_the_running_transaction"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def read(self: CatalogueReader) -> Catalogue:
        if self._catalogue is None:
            self._catalogue = build(read_facts(self._connection), self.database)
        return self._catalogue

    patch(CatalogueReader, "read", read)
