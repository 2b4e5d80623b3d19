"""A query with AS OF is answered from the database as it is."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.core.interface import TransactionStatus
from triplicate.sql.engine.past_reads import PastReads
from triplicate.sql.engine.session_database import SessionDatabase

TESTS = [
    "tests/unit/sql/pg/protocol/test_past_queries.py::test_a_query_reads_the_database_as_it_was_and_the_session_stays_in_the_present",
    "tests/unit/sql/pg/protocol/test_past_queries.py::test_a_point_may_be_a_parameter",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def open_present(
        self: PastReads, database: SessionDatabase, status: TransactionStatus, point: str, *, holds_writer: bool
    ) -> SessionDatabase:
        return database.present

    patch(PastReads, "open", open_present)
