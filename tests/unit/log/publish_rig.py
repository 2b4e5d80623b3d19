"""Sealed staging ledgers, ready to be published."""

from __future__ import annotations

from triplicate.log import Logs, StagedLedger, StagingOrigin


async def staged(logs: Logs, values: list[bytes], *, batch: int = 0, partition: int = 0, log: str = "l") -> StagedLedger:
    async with await logs.staging(StagingOrigin(log, "app", "q", batch, partition)) as writer:
        await writer.append_many(values)
        return await writer.seal()
