"""A worker copies entries without verifying their digests."""

from __future__ import annotations

from collections.abc import Callable

KIND = "repairs"


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.client import BookieCopies
    from triplicate.ledger import EntryCodec

    async def unverified(self: BookieCopies, codec: EntryCodec, entry_id: int, bookie_id: str) -> bytes | None:
        return await self._body(codec.ledger_id, entry_id, bookie_id)

    async def one_by_one(self: BookieCopies, codec: EntryCodec, first: int, count: int, max_bytes: int, bookie_id: str) -> list[bytes]:
        return []

    patch(BookieCopies, "read", unverified)
    patch(BookieCopies, "read_batch", one_by_one)
    patch(BookieCopies, "_is_right", lambda self, codec, body, entry_id, bookie_id: True)
