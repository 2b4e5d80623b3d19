"""A read counts an append sent before the read arrived as proof of leadership."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

KIND = "databases"
CHECKERS = ("registers_are_linearizable",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.replica import LeaderReads
    from triplicate.sql.engine.leadership import Leadership
    from triplicate.sql.executor.statement_batches import PendingBatch

    append_confirming = Leadership._append_confirming

    def riders(reads: LeaderReads) -> list[asyncio.Future[None]]:
        found: list[asyncio.Future[None]] = vars(reads).setdefault("_riders", [])
        return found

    async def and_let_riders_go(self: Leadership, pending: PendingBatch) -> int:
        end = await append_confirming(self, pending)
        for proof in riders(self.reads):
            if not proof.done():
                proof.set_result(None)
        riders(self.reads).clear()
        return end

    def ride(self: LeaderReads) -> asyncio.Future[None]:
        proof: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._confirmation.wait(proof)
        riders(self).append(proof)
        self._wanted.set()
        return proof

    patch(Leadership, "_append_confirming", and_let_riders_go)
    patch(LeaderReads, "proof", ride)
