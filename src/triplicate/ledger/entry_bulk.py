"""Many entries at once: decoding for readers that catch up, and verification for bookies that store.

Both loops avoid calls between functions: that is most of the cost of reading a range, and of an add at a bookie.
Source: BookKeeper `DigestManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import NamedTuple

from google_crc32c import extend as _crc32c_extend
from google_crc32c import value as _crc32c_value

from triplicate.errors import DigestMismatch
from triplicate.ledger.entry import ENTRY_HEADER, HEADER_BYTES, LAC_RECORD, DigestType, Entry, EntryCodec, digest_function

_SIZE_BYTES = 4
_CRC32C_START = HEADER_BYTES + 4
_unpack_header = ENTRY_HEADER.unpack_from
_unpack_size = Struct(">I").unpack_from
_unpack_crc32c_head = Struct(">32sI").unpack_from
_unpack_sized_crc32c_head = Struct(">I32sI").unpack_from
_new_entry = object.__new__


class DecodedEntries(NamedTuple):
    """Consecutive verified entries.

    Attributes:
        payload_bytes: sum of the payloads.
        mismatch: why the next entry was refused; None if all were decoded.
    """

    entries: list[Entry]
    payload_bytes: int
    mismatch: DigestMismatch | None


def decode_entries(codec: EntryCodec, data: bytes, position: int, end: int, first_entry_id: int, most: int) -> DecodedEntries:
    """`EntryCodec.decode` for consecutive entries, each behind its size as u32, up to the first that is refused.

    Args:
        data: holds the entries from `position` to `end`.
        first_entry_id: the id of the first; the others follow without a gap.
        most: the most entries to decode; the data behind them are not read.
    """
    entries: list[Entry] = []
    begin, mismatch = position, None
    if codec.digest_type is DigestType.CRC32C:
        position = _decode_crc32c(codec.ledger_id, data, position, end, first_entry_id, most, entries)
    # The rest has another digest, or is damaged; `decode` gives the reason.
    while position < end and len(entries) < most:
        entry_id, start = first_entry_id + len(entries), position + _SIZE_BYTES
        stop = start + _unpack_size(data, position)[0] if start <= end else end + 1
        try:
            if stop > end:
                raise codec.mismatch(entry_id, "its bytes end in the middle")
            entries.append(codec.decode(data[start:stop], entry_id))
        except DigestMismatch as refused:
            mismatch = refused
            break
        position = stop
    return DecodedEntries(entries, position - begin - len(entries) * (_SIZE_BYTES + codec.overhead), mismatch)


def _decode_crc32c(ledger_id: int, data: bytes, position: int, end: int, entry_id: int, most: int, entries: list[Entry]) -> int:
    """`decode_entries` for the default digest.

    Args:
        entries: empty; gets the good entries.

    Returns:
        the position of the first entry that is not good, or where the entries end.
    """
    parts, reached = _crc32c_parts(data, position, end, most)
    append, new, value, extend = entries.append, _new_entry, _crc32c_value, _crc32c_extend
    for header, stored, payload in parts:
        found_ledger, found_entry, last_add_confirmed, length = _unpack_header(header)
        if found_ledger != ledger_id or found_entry != entry_id or extend(value(header), payload) != stored:
            return position + sum([_SIZE_BYTES + _CRC32C_START + len(entry.payload) for entry in entries])
        # Equal to `Entry(...)`, and faster.
        entry = new(Entry)
        entry.ledger_id = ledger_id
        entry.entry_id = entry_id
        entry.last_add_confirmed = last_add_confirmed
        entry.length = length
        entry.payload = payload
        append(entry)
        entry_id += 1
    return reached


def _crc32c_parts(data: bytes, position: int, end: int, most: int) -> tuple[Iterable[tuple[bytes, int, bytes]], int]:
    """(header, digest, payload) of each of at most `most` entries behind their sizes, and where they end: before an impossible one."""
    if end - position >= _SIZE_BYTES + _CRC32C_START:
        size = _unpack_size(data, position)[0]
        step = _SIZE_BYTES + size
        count = min((end - position) // step, most)
        stop = position + count * step
        # Entries of one size: each byte of the size repeats at the distance of `step`.
        if size >= _CRC32C_START and all(data[at:stop:step] == data[at : at + 1] * count for at in range(position, position + _SIZE_BYTES)):
            # An iterator inside the interpreter splits them.
            return Struct(f">4x32sI{size - _CRC32C_START}s").iter_unpack(memoryview(data)[position:stop]), stop
    found: list[tuple[bytes, int, bytes]] = []
    while position + _SIZE_BYTES + _CRC32C_START <= end and len(found) < most:
        size, header, stored = _unpack_sized_crc32c_head(data, position)
        stop = position + _SIZE_BYTES + size
        if size < _CRC32C_START or stop > end:
            break
        found.append((header, stored, data[position + _SIZE_BYTES + _CRC32C_START : stop]))
        position = stop
    return found, position


def _has_right_crc32c(body: bytes) -> bool:
    if len(body) < _CRC32C_START:
        return False
    header, stored = _unpack_crc32c_head(body)
    return bool(_crc32c_extend(_crc32c_value(header), body[_CRC32C_START:]) == stored)


class DigestVerifier:
    """Verifies the digests of entries that are stored without being decoded.

    Attributes:
        is_right: `verify` for `bytes` in the fastest form, for entries of several ledgers in turn; `verify_all` is for many of one.
    """

    __slots__ = ("_digest", "_start", "digest_type", "is_right")

    def __init__(self, digest_type: DigestType, password: bytes) -> None:
        self.digest_type = DigestType(digest_type)
        self._digest = digest_function(self.digest_type, password)
        self._start = HEADER_BYTES + self.digest_type.size
        self.is_right: Callable[[bytes], bool] = _has_right_crc32c if self.digest_type is DigestType.CRC32C else self.verify

    def verify(self, body: bytes | bytearray | memoryview) -> bool:
        """Whether the digest inside a complete entry matches its header and payload."""
        body = bytes(body)
        start = self._start
        return len(body) >= start and self._digest(body[:HEADER_BYTES], body[start:]) == body[HEADER_BYTES:start]

    def verify_lac(self, record: bytes) -> bool:
        """Whether the digest inside the record of an explicit last-add-confirmed matches it."""
        signed = LAC_RECORD.size
        end = signed + self.digest_type.size
        return len(record) >= end and self._digest(record[:signed], b"") == record[signed:end]

    def verify_all(self, bodies: Sequence[bytes | bytearray | memoryview]) -> bool:
        """Whether `verify` holds for every entry."""
        if self.digest_type is not DigestType.CRC32C:
            return all(map(self.verify, bodies))
        start, value, extend, unpack = self._start, _crc32c_value, _crc32c_extend, _unpack_crc32c_head
        for body in bodies:
            if len(body) < start:
                return False
            header, stored = unpack(body)
            payload = body[start:]
            # The library accepts only `bytes`.
            if extend(value(header), payload if type(payload) is bytes else bytes(payload)) != stored:
                return False
        return True
