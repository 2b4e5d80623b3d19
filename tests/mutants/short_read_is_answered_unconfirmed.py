"""A read that ran on the event loop is answered at once, though this node may have been replaced as the leader."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.sql.core.interface import Cursor, Prepared, TransactionStatus, Value
from triplicate.sql.engine import session
from triplicate.sql.engine.cursors import RowsCursor

TESTS = [
    "tests/unit/sql/engine/test_session_short_reads.py::test_a_short_read_of_a_deposed_leader_is_refused",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = session.SqlSession._read

    async def read(self: session.SqlSession, prepared: Prepared, parameters: Sequence[Value], version: int | None) -> Cursor:
        if self.status is TransactionStatus.IDLE:
            rows = self._database.pool.read_now(prepared, parameters, self._database.schema_version)
            if rows is not None:
                return RowsCursor(prepared.columns, rows)
        return await original(self, prepared, parameters, version)

    patch(session.SqlSession, "_read", read)
