"""A bookie keeps the entries of every deleted ledger for the trash's period, also of those that cannot be undeleted."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/bookie/storage/test_garbage_deletions_without_trash.py::test_a_ledger_that_was_deleted_without_the_trash_is_collected_at_once[False]",
    "tests/unit/bookie/storage/test_garbage_deletions_without_trash.py::test_an_undeleted_ledger_goes_at_once_when_it_is_deleted_by_a_client_that_keeps_nothing",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.garbage import GarbageCollector

    async def nothing(self: GarbageCollector, missing: list[int]) -> list[int]:
        return []

    patch(GarbageCollector, "_unkept", nothing)
