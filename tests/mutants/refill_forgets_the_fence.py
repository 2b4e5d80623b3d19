"""A refilled bookie leaves limbo without the fences of closed ledgers, so that an old writer may go on there."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/autorecovery/test_bookie_refill.py::test_all_entries_and_fences_come_back_and_the_limbo_ends"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client import BookieCopies
    from triplicate.ledger import EntryCodec

    async def fence(self: BookieCopies, codec: EntryCodec, entry_id: int, bookie_id: str) -> None:
        return None

    patch(BookieCopies, "fence", fence)
