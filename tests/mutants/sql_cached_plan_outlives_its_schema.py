"""The plan cache returns a plan of an earlier schema."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.plans import PlanCache, StatementPlan

TESTS = [
    "tests/unit/sql/pg/protocol/test_plans.py::test_a_change_of_the_schema_empties_the_cache",
    "tests/unit/sql/pg/protocol/test_plans.py::test_a_text_means_what_the_schema_of_its_parse_says",
    "tests/unit/sql/pg/protocol/test_plans.py::test_a_plan_of_a_schema_that_has_changed_meanwhile_is_not_kept",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def get(self: PlanCache, version: int, sql: str, given_oids: tuple[int, ...]) -> StatementPlan | None:
        return self._plans.get((sql, given_oids))

    def add(self: PlanCache, version: int, sql: str, given_oids: tuple[int, ...], plan: StatementPlan) -> None:
        self._plans[sql, given_oids] = plan

    patch(PlanCache, "get", get)
    patch(PlanCache, "add", add)
