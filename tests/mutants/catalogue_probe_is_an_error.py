"""A query of the catalogue goes to SQLite untranslated, with its casts and arrays, and fails."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol import plans

TESTS = ["tests/unit/sql/pg/rewrite/test_catalogue_queries.py::test_psycopg_does_not_find_unsupported_types"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(plans, "catalogue_query", lambda _statement: None)
