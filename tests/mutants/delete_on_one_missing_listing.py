"""Garbage collection deletes a ledger that one listing lacks, without a lookup by its id."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/storage/test_garbage.py::test_metadata_out_of_reach_deletes_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.garbage import GarbageCollector

    async def believe_the_listing(self: GarbageCollector, held: list[int]) -> list[int]:
        listed = {ledger_id async for ledger_id in self.metadata.ledgers.ids()}
        return [ledger_id for ledger_id in held if ledger_id not in listed]

    patch(GarbageCollector, "_missing", believe_the_listing)
