"""Decoded entries come from a small pool, so an entry that a caller keeps is overwritten by a later one (BookKeeper issue 3104)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

KIND = "ledgers"

POOL = 8


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import Entry, EntryCodec, entry_bulk

    decode = EntryCodec.decode
    handed_out: deque[Entry] = deque()

    def recycled(self: EntryCodec, body: bytes, entry_id: int | None = None) -> Entry:
        entry = decode(self, body, entry_id)
        handed_out.append(entry)
        if len(handed_out) > POOL:
            handed_out.popleft().payload = entry.payload
        return entry

    def one_by_one(ledger_id: int, data: bytes, position: int, end: int, entry_id: int, most: int, entries: list[Entry]) -> int:
        return position

    patch(EntryCodec, "decode", recycled)
    patch(entry_bulk, "_decode_crc32c", one_by_one)
