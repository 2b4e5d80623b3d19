"""A replication worker copies what the first bookie answers, without verifying its digest."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client import BookieCopies
from triplicate.ledger import Entry, EntryCodec

TESTS = [
    "tests/unit/autorecovery/test_worker.py::test_a_damaged_copy_is_not_used",
    "tests/unit/client/test_bookie_copies.py::test_a_damaged_copy_and_a_refusal_are_errors",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def decode_any(copies: BookieCopies, codec: EntryCodec, body: bytes, entry_id: int | None, bookie_id: str) -> Entry:
        return Entry(codec.ledger_id, int.from_bytes(body[8:16], "big"), -1, 0, b"")

    patch(BookieCopies, "_decode", decode_any)
