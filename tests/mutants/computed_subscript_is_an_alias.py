"""A subscript that is no number alone is read as SQLite's name in brackets, and so as an alias of the array."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.rewrite import catalogue_queries

TESTS = ["tests/unit/sql/pg/rewrite/test_catalogue_queries.py::test_a_query_of_the_catalogue_finds_what_there_is"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(catalogue_queries, "_with_subscripts", lambda parts: parts)
