"""A transaction may write although the database has changed since its snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

KIND = "databases"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.core.statement_waits import StatementWaits
    from triplicate.sql.engine.interactive_transaction import InteractiveTransaction
    from triplicate.sql.engine.leadership import Leadership

    original = Leadership.claim

    async def claim(
        self: Leadership, snapshot: int | None, number: int | None, interrupted: asyncio.Future[None], waits: StatementWaits
    ) -> InteractiveTransaction:
        return await original(self, None, number, interrupted, waits)

    patch(Leadership, "claim", claim)
