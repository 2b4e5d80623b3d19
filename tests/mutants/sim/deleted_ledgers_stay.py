"""Garbage collection never completes a round, so bookies keep every deleted ledger."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"
CHECKERS = ("space",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.garbage import GarbageCollector

    async def collect_nothing(self: GarbageCollector) -> int:
        return 0

    patch(GarbageCollector, "collect", collect_nothing)
