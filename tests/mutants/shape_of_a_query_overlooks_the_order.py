"""A constant after ORDER BY becomes a parameter like one after WHERE, and no longer names a column."""

from __future__ import annotations

import re
from collections.abc import Callable

from triplicate.sql.pg.protocol import query_shapes

TESTS = [
    "tests/unit/sql/pg/protocol/test_query_shapes.py::test_other_queries_keep_their_constants",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    pattern = query_shapes._QUERY.pattern.replace("(?:\\s+limit", "(?:\\s+order\\s+by\\s+[0-9]+)?(?:\\s+limit")
    patch(query_shapes, "_QUERY", re.compile(pattern, re.ASCII | re.IGNORECASE))
    patch(query_shapes, "_CONSTANT", re.compile(r"((?<=[=<>])\s*|(?<= by) )([0-9]+)", re.ASCII))
