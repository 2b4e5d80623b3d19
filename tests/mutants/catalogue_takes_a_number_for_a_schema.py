"""The catalogue identifies a schema by SQLite's schema version alone, which is reused after a rollback."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.catalogue.virtual_tables import CatalogueReader

TESTS = ["tests/unit/sql/test_catalogue.py::test_a_schema_that_was_rolled_back_is_not_shown_for_another_of_its_number"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(CatalogueReader, "_schema_version", lambda self: (int(self._connection.pragma("schema_version")), 0))
