"""The session of a query with AS OF stays open when the rows have ended, and its copy with it."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.past_queries import _PastCursor

TESTS = [
    "tests/unit/sql/pg/protocol/test_past_queries.py::test_a_query_reads_the_database_as_it_was_and_the_session_stays_in_the_present",
    "tests/unit/sql/pg/protocol/test_past_queries.py::test_a_point_may_be_a_parameter",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def close(self: _PastCursor) -> None:
        await self._cursor.close()

    patch(_PastCursor, "close", close)
