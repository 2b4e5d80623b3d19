"""A statement of any length is parsed, and refused by the interface of SQLite only."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol import plans

TESTS = ["tests/unit/sql/pg/protocol/test_plans.py::test_a_statement_that_is_too_long_is_refused_before_it_is_parsed"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(plans, "MAX_STATEMENT_BYTES", 10**9)
