"""Decoding of an entry's payload, format 1.

`docs/formats/log.md` fixes the bytes. Decoding copies nothing that was stored uncompressed: columns are memoryviews on the payload,
laid out as Apache Arrow lays out binary columns, so that a Spark task can pass them on unchanged.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from triplicate.errors import ArgumentError, CorruptionError, FormatError
from triplicate.log.core.compression import CODECS, decompress
from triplicate.log.core.encryption import BLOCK_SIZE, EncryptionBlock, decode_block

Buffer = bytes | bytearray | memoryview

MAGIC = b"TRLE"
VERSION = 1
HEADER = struct.Struct("<4sHHIIQqII")
PRODUCER = struct.Struct("<16sIIQ")
HEADER_SIZE = HEADER.size
PRODUCER_SIZE = PRODUCER.size
ENTRY_TARGET_BYTES = 1024 * 1024
"""Writers close an entry at this size of its raw body."""
ENTRY_LIMIT_BYTES = 4 * 1024 * 1024
"""Header and raw body together never exceed this."""

CODEC_SHIFT = 1
CODEC_MASK = 0b111 << CODEC_SHIFT
CONTROL_KINDS = ("segment", "noop", "abort")
NULL_LENGTH = 0xFFFFFFFF
HEADER_KEY_LIMIT_BYTES = 0xFFFF
"""Longest key of a record's header."""

# Bits of the flags word beside the codec's three. Plain numbers: an IntFlag's operators cost a microsecond each, on every entry.
CONTROL, PREAMBLE, TIMESTAMPS, TRANSACTION_IDS = 1 << 0, 1 << 4, 1 << 5, 1 << 6
KEYS, HEADERS, HAS_PRODUCER, VALUE_VALIDITY, KEY_VALIDITY, ENCRYPTED = 1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12
COLUMN_FLAGS = PREAMBLE | TIMESTAMPS | TRANSACTION_IDS | KEYS | HEADERS | HAS_PRODUCER | VALUE_VALIDITY | KEY_VALIDITY
KNOWN_FLAGS = CODEC_MASK | CONTROL | COLUMN_FLAGS | ENCRYPTED

Headers = tuple[tuple[str, bytes | None], ...]
RecordHeaders = Sequence[tuple[str, bytes | None]]
"""The headers of one record, in order: key and value of each."""


@dataclass(frozen=True, slots=True)
class Producer:
    """The producer of the records, for applications that number their records.

    Args:
        id: 16 bytes.
        epoch: unsigned 32 bits.
        sequence: number of the entry's first record, unsigned 64 bits.
    """

    id: bytes
    epoch: int
    sequence: int


@dataclass(slots=True)
class EntryHeader:
    """The header alone: enough to find offsets and to count a segment, without touching the body."""

    header_length: int
    flags: int
    count: int
    first_index: int
    wall_time_us: int
    raw_length: int
    producer: Producer | None
    encryption: EncryptionBlock | None = None

    @property
    def is_control(self) -> bool:
        return bool(self.flags & CONTROL)

    @property
    def end_index(self) -> int:
        """Index within the segment of the record after this entry; of the last entry, the number of records of the segment."""
        return self.first_index + self.count


def decode_header(payload: Buffer) -> EntryHeader:
    """Read the header of an entry's payload.

    Raises:
        FormatError: not an entry of a log, or a version, flag, codec or field this release does not know; the message names it.
    """
    if len(payload) < HEADER_SIZE:
        raise FormatError(f"not an entry of a log: {len(payload)} bytes are less than a header of {HEADER_SIZE}")
    magic, version, header_length, flags, count, first_index, wall_time_us, raw_length, reserved = HEADER.unpack_from(payload)
    if magic != MAGIC:
        raise FormatError(f"not an entry of a log: it begins with {magic!r}, not {MAGIC!r}")
    if version != VERSION:
        raise FormatError(f"entry of a log has format version {version}; this release knows {VERSION}: upgrade Triplicate")
    if flags & ~KNOWN_FLAGS:
        raise FormatError(f"entry of a log has unknown flag bits {flags & ~KNOWN_FLAGS:#x}: upgrade Triplicate")
    if (flags & CODEC_MASK) >> CODEC_SHIFT not in CODECS:
        raise FormatError(f"entry of a log has unknown codec {(flags & CODEC_MASK) >> CODEC_SHIFT}: upgrade Triplicate")
    plain = HEADER_SIZE + (PRODUCER_SIZE if flags & HAS_PRODUCER else 0)
    expected = plain + (BLOCK_SIZE if flags & ENCRYPTED else 0)
    if header_length != expected or len(payload) < expected:
        raise FormatError(f"entry of a log says header length {header_length}, its flags say {expected}, it has {len(payload)} bytes")
    if reserved or (flags & CONTROL and (count or flags & COLUMN_FLAGS)):
        raise FormatError(f"entry of a log has reserved field {reserved}, count {count} with flags {flags:#x}")
    if plain + raw_length > ENTRY_LIMIT_BYTES:
        raise FormatError(f"entry of a log says a body of {raw_length} bytes; the limit is {ENTRY_LIMIT_BYTES} with its header")
    producer = None
    if flags & HAS_PRODUCER:
        identity, epoch, reserved, sequence = PRODUCER.unpack_from(payload, HEADER_SIZE)
        if reserved:
            raise FormatError(f"entry of a log has reserved producer field {reserved}")
        producer = Producer(identity, epoch, sequence)
    encryption = None
    if flags & ENCRYPTED:
        encryption = decode_block(payload, plain)
        if bool(encryption.control) != bool(flags & CONTROL) or encryption.control > len(CONTROL_KINDS):
            raise FormatError(f"encrypted entry of a log has control kind {encryption.control} with flags {flags:#x}: upgrade Triplicate")
    return EntryHeader(header_length, flags, count, first_index, wall_time_us, raw_length, producer, encryption)


@dataclass(slots=True)
class EntryView:
    """One decoded entry. Columns are memoryviews: offsets of format ``I``, numbers of format ``q``, data of format ``B``.

    The buffers stay valid as long as the view (or anything made from it) lives. Validity bits are Arrow's: set where a value exists.
    """

    header: EntryHeader
    preamble: memoryview | None
    value_offsets: memoryview
    value_data: memoryview
    timestamps_us: memoryview | None
    transaction_ids: memoryview | None
    key_offsets: memoryview | None
    key_data: memoryview | None
    header_offsets: memoryview | None
    header_data: memoryview | None
    value_validity: memoryview | None
    key_validity: memoryview | None
    control: Mapping[str, Any] | None
    """The control record with its `kind`, or None in an entry of records."""

    @property
    def count(self) -> int:
        return self.header.count

    def values(self, start: int = 0, end: int | None = None) -> list[bytes | None]:
        """The values of the records `start` to `end` (exclusive), None where null."""
        return _cut(self.value_offsets, self.value_data, self.value_validity, start, self.count if end is None else end)

    def keys(self, start: int = 0, end: int | None = None) -> list[bytes | None] | None:
        """The keys, None where a record has none; None in place of the list if the entry has no keys."""
        if self.key_offsets is None or self.key_data is None:
            return None
        return _cut(self.key_offsets, self.key_data, self.key_validity, start, self.count if end is None else end)

    def headers(self, start: int = 0, end: int | None = None) -> list[Headers] | None:
        """The headers of each record, or None if the entry has none."""
        if self.header_offsets is None or self.header_data is None:
            return None
        blobs = _cut(self.header_offsets, self.header_data, None, start, self.count if end is None else end)
        return [decode_record_headers(blob or b"") for blob in blobs]


def _cut(offsets: memoryview, data: memoryview, validity: memoryview | None, start: int, end: int) -> list[bytes | None]:
    places = offsets[start : end + 1].tolist()
    if not places:
        return []
    base = places[0]
    text = bytes(data[base : places[-1]])
    items: list[bytes | None] = [text[left - base : right - base] for left, right in pairwise(places)]
    if validity is not None:
        for slot in range(start, end):
            if not validity[slot >> 3] >> (slot & 7) & 1:
                items[slot - start] = None
    return items


class _Parts:
    """Cuts a raw body into its parts, each at a multiple of 8, and refuses parts that do not fit."""

    def __init__(self, body: memoryview, count: int) -> None:
        self.body = body
        self.count = count
        self.position = 0

    def read(self, size: int, what: str) -> memoryview:
        start = self.position
        if start + size > len(self.body):
            raise CorruptionError(f"entry of a log ends within its {what}: {len(self.body)} bytes, {start + size} needed")
        self.position = (start + size + 7) & ~7
        return self.body[start : start + size]

    def column(self, what: str) -> tuple[memoryview, memoryview]:
        offsets = _numbers(self.read(4 * (self.count + 1), f"{what} offsets"), "I")
        places = offsets.tolist()
        # Arrow does not check offsets, so they are checked here; sorting a sorted list is one fast pass.
        if places[0] != 0 or places != sorted(places):
            raise CorruptionError(f"entry of a log has {what} offsets that do not begin at 0 or that fall")
        return offsets, self.read(places[-1], f"{what} data")

    def finish(self) -> None:
        if self.position != len(self.body):
            raise CorruptionError(f"entry of a log has a body of {len(self.body)} bytes, its parts have {self.position}")


def _numbers(part: memoryview, code: Literal["I", "q"]) -> memoryview:
    if sys.byteorder == "little":
        return part.cast(code)
    size = struct.calcsize(code)
    return memoryview(struct.pack(f"={len(part) // size}{code}", *struct.unpack(f"<{len(part) // size}{code}", part))).cast(code)


def decode_entry(payload: Buffer) -> EntryView:
    """Decode a whole entry of a log that is not encrypted.

    Raises:
        FormatError: as `decode_header`; also a control record of unknown kind, and an encrypted entry.
        CorruptionError: the body does not decompress or contradicts itself.
    """
    header = decode_header(payload)
    if header.encryption is not None:
        raise FormatError(f"entry of a log is encrypted with key {header.encryption.key_id!r}, but its log is not an encrypted one")
    return decode_body(header, memoryview(payload)[header.header_length :])


def decode_body(header: EntryHeader, stored: memoryview) -> EntryView:
    """Decode the body of an entry.

    Args:
        stored: the body, decrypted if it is encrypted.

    Raises:
        As `decode_entry`.
    """
    flags = header.flags
    body = decompress((flags & CODEC_MASK) >> CODEC_SHIFT, stored, header.raw_length)
    if flags & CONTROL:
        empty = memoryview(b"")
        control = _decode_control(body)
        return EntryView(header, None, empty.cast("I"), empty, None, None, None, None, None, None, None, None, control)
    count = header.count
    parts = _Parts(body, count)
    preamble = timestamps = transaction_ids = key_offsets = key_data = header_offsets = header_data = None
    if flags & PREAMBLE:
        if len(body) < 4:
            raise CorruptionError("entry of a log ends within its preamble")
        preamble = parts.read(4 + int.from_bytes(body[:4], "little"), "preamble")[4:]
    value_offsets, value_data = parts.column("value")
    if flags & TIMESTAMPS:
        timestamps = _numbers(parts.read(8 * count, "timestamps"), "q")
    if flags & TRANSACTION_IDS:
        transaction_ids = _numbers(parts.read(8 * count, "transaction ids"), "q")
    if flags & KEYS:
        key_offsets, key_data = parts.column("key")
    if flags & HEADERS:
        header_offsets, header_data = parts.column("header")
    bits = (count + 7) // 8
    value_validity = parts.read(bits, "value validity") if flags & VALUE_VALIDITY else None
    key_validity = parts.read(bits, "key validity") if flags & KEY_VALIDITY else None
    parts.finish()
    return EntryView(
        header,
        preamble,
        value_offsets,
        value_data,
        timestamps,
        transaction_ids,
        key_offsets,
        key_data,
        header_offsets,
        header_data,
        value_validity,
        key_validity,
        None,
    )


def _decode_control(body: memoryview) -> Mapping[str, Any]:
    try:
        fields = json.loads(bytes(body))
    except ValueError as error:
        raise CorruptionError(f"control record is not JSON: {error}") from error
    if not isinstance(fields, dict) or fields.get("kind") not in CONTROL_KINDS:
        kind = fields.get("kind") if isinstance(fields, dict) else fields
        raise FormatError(f"control record of unknown kind {kind!r}: upgrade Triplicate")
    return fields


def encode_record_headers(headers: RecordHeaders) -> bytes:
    """The headers of one record as stored: name and value of each, in order.

    Raises:
        ArgumentError: a name is no text, or has more than 65,535 bytes; a value is no bytes.
    """
    parts: list[bytes] = []
    for name, value in headers:
        if not isinstance(name, str) or not (value is None or isinstance(value, bytes | bytearray | memoryview)):
            raise ArgumentError(f"a header of a record is a str with bytes or None, not {type(name).__name__} with {type(value).__name__}")
        try:
            text = name.encode()
        except UnicodeEncodeError as error:
            raise ArgumentError(f"the name of a record's header is no UTF-8: {error}") from error
        if len(text) > HEADER_KEY_LIMIT_BYTES:
            raise ArgumentError(f"the name of a record's header has {len(text)} bytes; at most {HEADER_KEY_LIMIT_BYTES} are possible")
        stored = b"" if value is None else bytes(value)  # The bytes of a memoryview of numbers are more than its length.
        size = NULL_LENGTH if value is None else len(stored)
        parts += (len(text).to_bytes(2, "little"), text, size.to_bytes(4, "little"), stored)
    return b"".join(parts)


def decode_record_headers(blob: bytes) -> Headers:
    """Undo `encode_record_headers`.

    Raises:
        CorruptionError: the bytes end within a header.
    """
    headers: list[tuple[str, bytes | None]] = []
    position = 0
    while position < len(blob):
        size = int.from_bytes(blob[position : position + 2], "little")
        name = blob[position + 2 : position + 2 + size]
        position += 2 + size
        size = int.from_bytes(blob[position : position + 4], "little")
        position += 4
        value = None
        if size != NULL_LENGTH:
            value = blob[position : position + size]
            position += size
        if position > len(blob):
            raise CorruptionError("headers of a record end within a header")
        try:
            headers.append((name.decode(), value))
        except UnicodeDecodeError as error:
            raise CorruptionError("the name of a record's header is not UTF-8") from error
    return tuple(headers)
