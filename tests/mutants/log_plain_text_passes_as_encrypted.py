"""A reader of an encrypted log accepts entries in plain text, which anybody can put into its ledgers."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/log/test_logs_encrypted.py::test_plain_text_that_is_put_into_the_ledger_is_refused[reader]",
    "tests/unit/log/test_logs_encrypted.py::test_plain_text_that_is_put_into_the_ledger_is_refused[ranges]",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import Entry
    from triplicate.log.core.encrypted_entries import EntryDecoder
    from triplicate.log.core.payload import EntryView, decode_entry, decode_header

    decode = EntryDecoder.decode

    def lenient(self: EntryDecoder, entry: Entry, segment_first_offset: int, *, is_copied: bool) -> EntryView:
        if decode_header(entry.payload).encryption is None:
            return decode_entry(entry.payload)
        return decode(self, entry, segment_first_offset, is_copied=is_copied)

    patch(EntryDecoder, "decode", lenient)
