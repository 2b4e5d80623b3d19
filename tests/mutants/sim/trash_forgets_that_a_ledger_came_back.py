"""A ledger that was brought back keeps the note of its first deletion, so a second one deletes its entries at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

KIND = "ledgers"
CHECKERS = ("undeleted_ledgers_are_whole",)


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.garbage import GarbageCollector
    from triplicate.bookie.index import Index

    note_missing = Index.note_missing

    def note_new_ones_only(self: Index, now_ms: int, new: Sequence[int], found_again: Sequence[int] = ()) -> None:
        note_missing(self, now_ms, new, ())

    async def never(self: GarbageCollector, due: list[int], now_ms: int) -> dict[int, int]:
        return {}

    patch(Index, "note_missing", note_new_ones_only)
    patch(GarbageCollector, "_deleted_again", never)
