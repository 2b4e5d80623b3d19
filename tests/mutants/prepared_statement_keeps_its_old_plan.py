"""A prepared statement runs with its translation for an earlier schema."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.interface import Session
from triplicate.sql.pg.protocol import conversation, portal_runner
from triplicate.sql.pg.protocol.plans import PlanCache
from triplicate.sql.pg.protocol.prepared_statements import PreparedStatement

TESTS = [
    "tests/unit/sql/pg/protocol/test_conversation.py::test_a_prepared_statement_means_what_its_text_means_now",
    "tests/unit/sql/pg/protocol/test_conversation.py::test_a_portal_made_before_a_change_of_the_schema_runs_as_its_text_means_then",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def keep(session: Session, statement: PreparedStatement, cache: PlanCache) -> None:
        return None

    patch(conversation, "update_plan", keep)
    patch(portal_runner, "update_plan", keep)
