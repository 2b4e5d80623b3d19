"""Expressions in queries of the catalogue have the names that SQLite gives them: their rewritten texts."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.rewrite import catalogue_queries

TESTS = ["tests/unit/sql/pg/rewrite/test_catalogue_queries.py::test_clients_see_these_names"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(catalogue_queries, "result_names", lambda _parts: ())
