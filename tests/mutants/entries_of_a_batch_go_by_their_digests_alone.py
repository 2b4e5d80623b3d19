"""A batch read accepts any entry with a valid digest, without checking its ledger and entry id."""

from __future__ import annotations

import struct
from collections.abc import Callable

TESTS = [
    "tests/unit/client/read/test_batch_read.py::test_an_entry_in_the_place_of_another_is_read_from_another_replica",
    "tests/unit/ledger/test_entry.py::test_many_entries_end_before_the_first_that_is_refused",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import Entry, entry_bulk

    plain = entry_bulk._decode_crc32c

    def as_they_say(ledger_id: int, data: bytes, position: int, end: int, entry_id: int, most: int, entries: list[Entry]) -> int:
        reached = plain(ledger_id, data, position, end, entry_id, most, entries)
        if reached + 20 <= end and len(entries) < most:
            found_ledger, found_entry = struct.unpack_from(">qq", data, reached + 4)
            others: list[Entry] = []
            reached = plain(found_ledger, data, reached, end, found_entry, most - len(entries), others)
            entries += others
        return reached

    patch(entry_bulk, "_decode_crc32c", as_they_say)
