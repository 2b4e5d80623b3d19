"""Garbage collection deletes a ledger in the first round that misses it, without keeping it in the trash."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/crash/test_points.py::test_a_few_crash_points_lose_nothing"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.garbage import GarbageCollector

    async def all_of_them(self: GarbageCollector, missing: list[int]) -> list[int]:
        return missing

    patch(GarbageCollector, "_due", all_of_them)
