"""Cached plans outlive the file of the copy that they were made for."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.interface import Database
from triplicate.sql.pg.protocol.client_connections import ClientConnections, _DatabasePlans
from triplicate.sql.pg.protocol.plans import PlanCache

TESTS = ["tests/unit/sql/pg/protocol/test_plans.py::test_a_copy_that_was_replaced_leaves_no_plans"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def plans_of(self: ClientConnections, database: Database) -> PlanCache:
        return self._plans.setdefault(database, _DatabasePlans(0, PlanCache())).cache

    patch(ClientConnections, "plans_of", plans_of)
