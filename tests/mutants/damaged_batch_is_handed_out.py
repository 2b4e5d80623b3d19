"""A batch read returns entries without verifying their digests."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/client/read/test_batch_read.py::test_a_damaged_copy_is_read_from_another_replica",
    "tests/unit/ledger/test_entry.py::test_many_entries_end_before_the_first_that_is_refused",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from tests.entry_headers import entry_header
    from triplicate import ledger
    from triplicate.client.read import batch_read
    from triplicate.ledger import DecodedEntries, Entry, EntryCodec
    from triplicate.wire import v2

    def unseen(codec: EntryCodec, data: bytes, position: int, end: int, first_entry_id: int, most: int) -> DecodedEntries:
        bodies = v2.split_sized(data[position:end])[:most]
        entries = [Entry(*entry_header(body), body[codec.overhead :]) for body in bodies]
        return DecodedEntries(entries, sum(len(entry.payload) for entry in entries), None)

    patch(ledger, "decode_entries", unseen)
    patch(batch_read, "decode_entries", unseen)
