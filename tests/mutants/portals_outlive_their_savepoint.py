"""A portal that was opened within a savepoint gives rows that ROLLBACK TO has undone."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.prepared_statements import Portal

TESTS = ["tests/unit/sql/pg/protocol/test_conversation.py::test_rollback_to_a_savepoint_closes_the_portals_that_began_within_it"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    close_portals = ConnectionState.close_portals

    async def at_the_end(self: ConnectionState, *, but: Portal | None = None, since: int = 0) -> None:
        if not since:
            await close_portals(self, but=but)

    patch(ConnectionState, "close_portals", at_the_end)
