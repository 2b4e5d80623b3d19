"""The wait of a session for its copy of the past cannot be interrupted."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.past_reads import PastReads
from triplicate.sql.engine.session_database import SessionDatabase

TESTS = [
    "tests/unit/sql/pg/protocol/test_past_queries.py::test_the_wait_for_a_copy_ends_by_timeout_cancel_and_with_its_client[setting]",
    "tests/unit/sql/pg/protocol/test_past_queries.py::test_the_wait_for_a_copy_ends_by_timeout_cancel_and_with_its_client[clause]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def opened(self: PastReads, database: SessionDatabase, point: str) -> SessionDatabase:
        return await database.past(point)

    patch(PastReads, "_opened", opened)
