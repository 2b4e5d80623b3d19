"""A query of the catalogue may have any number of functions of rows, each of which is rewritten in time that grows with the query."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.rewrite import catalogue_queries

TESTS = ["tests/unit/sql/pg/rewrite/test_catalogue_queries.py::test_a_query_that_would_grow_is_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(catalogue_queries, "check_size", lambda parts: None)
