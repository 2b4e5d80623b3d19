"""A ledger that is missing from the listing of the trash is deleted without checking that it was not undeleted meanwhile."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/storage/test_garbage_deletions_without_trash.py::test_a_ledger_whose_record_comes_or_goes_while_it_is_looked_for_keeps_its_entries[listing]"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.garbage import GarbageCollector

    async def unlisted(self: GarbageCollector, missing: list[int]) -> list[int]:
        kept = await self.metadata.trash.ledger_ids()
        return [ledger_id for ledger_id in missing if ledger_id not in kept]

    patch(GarbageCollector, "_unkept", unlisted)
