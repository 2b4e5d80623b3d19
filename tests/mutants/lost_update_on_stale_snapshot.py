"""A transaction may write although the database has changed since its snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from triplicate.sql.core.statement_waits import StatementWaits
from triplicate.sql.engine.interactive_transaction import InteractiveTransaction
from triplicate.sql.engine.leadership import Leadership

TESTS = ["tests/unit/sql/engine/test_session.py::test_a_write_on_a_stale_snapshot_fails_and_only_rollback_helps"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = Leadership.claim

    async def claim(
        self: Leadership, snapshot: int | None, number: int | None, interrupted: asyncio.Future[None], waits: StatementWaits
    ) -> InteractiveTransaction:
        return await original(self, None, number, interrupted, waits)

    patch(Leadership, "claim", claim)
