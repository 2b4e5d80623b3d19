"""A deleted ledger's entries are deleted at once, although it could still be undeleted."""

from __future__ import annotations

from collections.abc import Callable

KIND = "ledgers"
CHECKERS = ("undeleted_ledgers_are_whole",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.garbage import GarbageCollector

    async def all_of_them(self: GarbageCollector, missing: list[int]) -> list[int]:
        return missing

    patch(GarbageCollector, "_due", all_of_them)
