"""A snapshot that no log has confirmed stays the transaction's, and is read when the client goes back to a savepoint."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.engine.session import SqlSession, _confirm
from triplicate.sql.executor.reader_pool import HeldSnapshot

TESTS = ["tests/unit/sql/test_leadership.py::test_a_snapshot_that_was_not_confirmed_is_read_by_no_later_statement"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def keep(self: SqlSession, leadership: Leadership | None) -> HeldSnapshot:
        hold = self._hold = await self._home.pool.acquire(snapshot=True)
        self._snapshot = await hold.run(hold.reader.begin)
        await _confirm(leadership)
        return hold

    patch(SqlSession, "_take_snapshot", keep)
