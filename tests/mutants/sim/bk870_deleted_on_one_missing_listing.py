"""Garbage collection deletes what a listing lacks that began before the bookie made its own list, and asks nobody a second time."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.garbage import GarbageCollector

    async def missing(self: GarbageCollector, held: list[int]) -> list[int]:
        listed = {ledger_id async for ledger_id in self.metadata.ledgers.ids()}
        return [ledger_id for ledger_id in await self._storage.ledger_ids() if ledger_id not in listed]

    patch(GarbageCollector, "_missing", missing)
