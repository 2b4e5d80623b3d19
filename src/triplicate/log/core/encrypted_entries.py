"""The entries of an encrypted log: their encoding and decoding, and the check that each is where its writer put it. Pure.

The first index is not authenticated, since a rewriting changes it and has no key. The encryption block says in its place where the entry
belongs, and a decoder compares that with where it was found.
"""

from __future__ import annotations

from triplicate.ledger import Entry
from triplicate.log.core.encryption import BLOCK_SIZE, ENTRIES, WRITTEN, EncryptionBlock, KeySource, LedgerDecryptor, LedgerEncryptor
from triplicate.log.core.payload import CONTROL_KINDS, EntryHeader, EntryView, decode_body, decode_entry, decode_header
from triplicate.log.core.payload_encoder import EncodedEntry

_BEFORE_FIRST_INDEX, _AFTER_FIRST_INDEX = 16, 24


def encrypt_entry(encryptor: LedgerEncryptor, encoded: EncodedEntry, first_index: int, place: int, wall_time_us: int) -> bytes:
    """The payload of an encrypted entry.

    Args:
        first_index, wall_time_us: as for `EncodedEntry.payload`.
        place: see `EncryptionBlock`.
    """
    header = encoded.encrypted_header(first_index, wall_time_us)
    authenticated = header[:_BEFORE_FIRST_INDEX] + header[_AFTER_FIRST_INDEX:]
    return encryptor.encrypt(header, authenticated, encoded.body, place, encoded.control)


class EntryDecoder:
    """Decodes the entries of one log for one reader.

    Args:
        log: its name, for messages.
        keys: None where the log is not encrypted.
    """

    def __init__(self, log: str, log_id: str, keys: KeySource | None) -> None:
        self._decryptor = None if keys is None else LedgerDecryptor(log, log_id, keys, ENTRIES)
        self._staged: tuple[int, int] | None = None
        """Of the last entry that a rewriting copied from a staging ledger: that ledger, and the index at which it begins in the copy."""

    def decode(self, entry: Entry, segment_first_offset: int, *, is_copied: bool) -> EntryView:
        """Decode an entry.

        Args:
            segment_first_offset: offset of the first record of its ledger.
            is_copied: whether the ledger's metadata say that its entries were copied from other ledgers.

        Raises:
            LogKeyMissing, ConfigError: the key cannot be had. EntryNotAuthentic: the entry was changed or moved, or is in plain text
            although the log is encrypted. Also as `decode_entry`.
        """
        decryptor = self._decryptor
        if decryptor is None:
            return decode_entry(entry.payload)
        header = decode_header(entry.payload)
        block = header.encryption
        if block is None:
            raise decryptor.not_authentic(
                entry.ledger_id, entry.entry_id, "is in plain text, although the log is encrypted: its writer did not write it"
            )
        authenticated = entry.payload[:_BEFORE_FIRST_INDEX] + entry.payload[_AFTER_FIRST_INDEX : header.header_length - BLOCK_SIZE]
        body = decryptor.decrypt(block, authenticated, memoryview(entry.payload)[header.header_length :], entry.ledger_id, entry.entry_id)
        wrong = self._misplaced(entry.ledger_id, header, block, segment_first_offset, is_copied=is_copied)
        if wrong:
            raise decryptor.not_authentic(entry.ledger_id, entry.entry_id, f"was moved: {wrong}")
        view = decode_body(header, memoryview(body))
        if _control_number(view) != block.control:
            raise decryptor.not_authentic(entry.ledger_id, entry.entry_id, f"is no control record of kind {block.control}")
        return view

    def _misplaced(self, ledger_id: int, header: EntryHeader, block: EncryptionBlock, first_offset: int, *, is_copied: bool) -> str:
        """Why an authentic entry is not where it belongs; empty where it is."""
        if not is_copied and block.ledger_id != ledger_id:
            return f"it was written to ledger {block.ledger_id}"
        if block.origin == WRITTEN:
            offset = first_offset + header.first_index
            return "" if offset == block.place else f"it was written at offset {block.place} and is found at {offset}"
        begin = header.first_index - block.place
        expected = 0
        if is_copied:
            before, self._staged = self._staged, (block.ledger_id, begin)
            expected = begin if before is None or before[0] != block.ledger_id else before[1]
        return "" if begin == expected else f"it was written at index {block.place} and is found at {header.first_index - expected}"


def _control_number(view: EntryView) -> int:
    return 0 if view.control is None else 1 + CONTROL_KINDS.index(view.control["kind"])
