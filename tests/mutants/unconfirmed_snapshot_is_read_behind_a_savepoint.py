"""After ROLLBACK TO a transaction reads a snapshot that no log has confirmed."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.engine.read_admission import confirm
from triplicate.sql.engine.session import SqlSession
from triplicate.sql.executor.reader_pool import ReaderCheckout

TESTS = ["tests/unit/sql/engine/test_leadership.py::test_a_snapshot_that_was_not_confirmed_is_read_by_no_later_statement"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def keep(self: SqlSession, leadership: Leadership | None, sql: str, version: int | None) -> ReaderCheckout:
        checkout = self._checkout = await self._database.pool.acquire(snapshot=True)
        self._snapshot = await checkout.run(checkout.reader.begin)
        await confirm(leadership, self.waits)
        return checkout

    patch(SqlSession, "_begin_snapshot", keep)
