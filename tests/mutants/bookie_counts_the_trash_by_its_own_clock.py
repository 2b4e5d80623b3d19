"""A bookie whose clock jumps ahead by the trash period deletes the entries of every ledger in the trash."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.storage import garbage
from triplicate.metadata.trash import Trash

TESTS = ["tests/unit/bookie/storage/test_garbage_trash.py::test_a_bookie_whose_clock_jumps_keeps_the_entries_for_the_period"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def due(self: garbage.GarbageCollector, missing: list[int]) -> list[int]:
        async def now_ms(_: Trash) -> int:
            return self._host.clock.wall_us() // 1000

        kept = Trash.now_ms
        Trash.now_ms = now_ms  # type: ignore[method-assign, assignment]
        try:
            return await original(self, missing)
        finally:
            Trash.now_ms = kept  # type: ignore[method-assign]

    original = garbage.GarbageCollector._due
    patch(garbage.GarbageCollector, "_due", due)
