"""A query with AS OF has the columns of then, also where its client was given those of another time."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol import past_queries
from triplicate.sql.pg.protocol.plans import StatementPlan

TESTS = [
    "tests/unit/sql/pg/protocol/test_past_queries.py::test_a_point_may_be_a_parameter",
    "tests/unit/sql/pg/protocol/test_past_queries.py::test_a_prepared_query_has_the_columns_of_then_and_keeps_them_when_the_schema_changes",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def unchecked(plan: StatementPlan, old: StatementPlan) -> StatementPlan:
        return plan

    patch(past_queries, "check_shape", unchecked)
