"""Encoding of an entry's payload, format 1, from Python values or from column buffers."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, cast

from triplicate.errors import ArgumentError, RecordTooLarge
from triplicate.log.core.compression import Compressor
from triplicate.log.core.encryption import BLOCK_SIZE
from triplicate.log.core.payload import (
    CODEC_SHIFT,
    CONTROL,
    CONTROL_KINDS,
    ENCRYPTED,
    ENTRY_LIMIT_BYTES,
    HAS_PRODUCER,
    HEADER,
    HEADER_SIZE,
    HEADERS,
    KEY_VALIDITY,
    KEYS,
    MAGIC,
    PREAMBLE,
    PRODUCER,
    PRODUCER_SIZE,
    TIMESTAMPS,
    TRANSACTION_IDS,
    VALUE_VALIDITY,
    VERSION,
    Buffer,
    Producer,
    RecordHeaders,
    encode_record_headers,
)

_PADDING = (b"", b"\0" * 7, b"\0" * 6, b"\0" * 5, b"\0" * 4, b"\0" * 3, b"\0" * 2, b"\0")
_NO_BYTES = b""
_TIMESTAMP = struct.Struct("<q")
ENTRY_COST_BYTES = 256
"""Upper bound on the bytes of an entry beside its records: header, padding, validity bits."""


@dataclass(slots=True)
class Columns:
    """The records of one entry as buffers, little-endian: what Arrow holds for a binary column, cut so that its offsets begin at 0.

    Args:
        count: number of records, at least 1.
        value_offsets: u32[count + 1].
        value_data: u8[last offset].
        timestamps_us, transaction_ids: i64[count].
        key_offsets, key_data, header_offsets, header_data: as for values.
        value_validity, key_validity: a bit per record, least significant first, set where it exists; None if all exist.
    """

    count: int
    value_offsets: Buffer
    value_data: Buffer
    timestamps_us: Buffer | None = None
    transaction_ids: Buffer | None = None
    key_offsets: Buffer | None = None
    key_data: Buffer | None = None
    header_offsets: Buffer | None = None
    header_data: Buffer | None = None
    value_validity: Buffer | None = None
    key_validity: Buffer | None = None

    @property
    def has_only_values(self) -> bool:
        """Whether every record has a value and nothing else."""
        return (
            self.timestamps_us is None
            and self.transaction_ids is None
            and self.key_offsets is None
            and self.header_offsets is None
            and self.value_validity is None
            and self.key_validity is None
            and self.key_data is None
            and self.header_data is None
        )


def columns_of(
    values: Sequence[Buffer | None],
    *,
    keys: Sequence[Buffer | None] | None = None,
    timestamps_us: Sequence[int] | None = None,
    headers: Sequence[RecordHeaders] | None = None,
    transaction_ids: Sequence[int] | None = None,
) -> Columns:
    """Lay out Python values as columns. Every sequence given has one item per record.

    Raises:
        ArgumentError: no record, or sequences of different lengths.
        RecordTooLarge: the values alone exceed the limit of an entry.
    """
    count = len(values)
    if not count:
        raise ArgumentError("an entry needs at least one record")
    for name, column in (("keys", keys), ("timestamps_us", timestamps_us), ("headers", headers), ("transaction_ids", transaction_ids)):
        if column is not None and len(column) != count:
            raise ArgumentError(f"{name} has {len(column)} items for {count} records")
    value_offsets, value_data, value_validity = _binary_column(values)
    columns = Columns(count, value_offsets, value_data, value_validity=value_validity)
    if keys is not None:
        columns.key_offsets, columns.key_data, columns.key_validity = _binary_column(keys)
    if headers is not None:
        columns.header_offsets, columns.header_data, _ = _binary_column([encode_record_headers(item) for item in headers])
    try:
        if timestamps_us is not None:
            columns.timestamps_us = struct.pack(f"<{count}q", *timestamps_us)
        if transaction_ids is not None:
            columns.transaction_ids = struct.pack(f"<{count}q", *transaction_ids)
    except struct.error as error:
        raise ArgumentError(f"timestamps and transaction ids are signed 64-bit numbers: {error}") from error
    return columns


def _binary_column(items: Sequence[Buffer | None]) -> tuple[bytes, bytes, bytes | None]:
    validity = None
    if None in items:
        bits = bytearray((len(items) + 7) // 8)
        for slot, item in enumerate(items):
            if item is not None:
                bits[slot >> 3] |= 1 << (slot & 7)
        validity = bytes(bits)
    present = cast("Sequence[Buffer]", items) if validity is None else [_NO_BYTES if item is None else item for item in items]
    try:
        places = list(accumulate(map(len, present), initial=0))
        data = b"".join(present)
    except TypeError as error:
        raise ArgumentError(f"values and keys of records are bytes, bytearrays or plain memoryviews of bytes: {error}") from error
    if places[-1] > ENTRY_LIMIT_BYTES:
        raise RecordTooLarge(f"{len(items)} records hold {places[-1]} bytes; an entry holds at most {ENTRY_LIMIT_BYTES}: nothing was sent")
    return struct.pack(f"<{len(places)}I", *places), data, validity


@dataclass(slots=True)
class EncodedEntry:
    """A finished body. Its header is made when it is sent, because only then its segment and its wall time are known."""

    flags: int
    count: int
    raw_length: int
    body: bytes
    producer: Producer | None
    control: int = 0
    """0 for records, otherwise 1 + the place of the control record's kind in `CONTROL_KINDS`."""

    @property
    def size_bytes(self) -> int:
        """Size of the payload where it is not encrypted."""
        return HEADER_SIZE + (PRODUCER_SIZE if self.producer else 0) + len(self.body)

    def payload(self, first_index: int, wall_time_us: int) -> bytes:
        """The payload to append to a ledger.

        Args:
            first_index: number of records before it in its segment.
            wall_time_us: µs since the epoch, never less than that of the entry before.
        """
        length = HEADER_SIZE if self.producer is None else HEADER_SIZE + PRODUCER_SIZE
        header = HEADER.pack(MAGIC, VERSION, length, self.flags, self.count, first_index, wall_time_us, self.raw_length, 0)
        if self.producer is None:
            return header + self.body
        return b"".join((header, self._producer_part(self.producer), self.body))

    def encrypted_header(self, first_index: int, wall_time_us: int) -> bytes:
        """The header of the payload of an encrypted entry, up to the encryption block. Arguments as for `payload`."""
        length = (HEADER_SIZE if self.producer is None else HEADER_SIZE + PRODUCER_SIZE) + BLOCK_SIZE
        flags = self.flags | ENCRYPTED
        header = HEADER.pack(MAGIC, VERSION, length, flags, self.count, first_index, wall_time_us, self.raw_length, 0)
        return header if self.producer is None else header + self._producer_part(self.producer)

    @staticmethod
    def _producer_part(producer: Producer) -> bytes:
        return PRODUCER.pack(producer.id, producer.epoch, 0, producer.sequence)


def encode_columns(
    columns: Columns, compressor: Compressor, *, preamble: Buffer | None = None, producer: Producer | None = None
) -> EncodedEntry:
    """Make one entry of columns.

    Raises:
        RecordTooLarge: header and raw body would exceed 4 MiB.
        ArgumentError: the producer's id has not 16 bytes, its numbers do not fit, or a buffer has not the length that the count asks for.
    """
    flags = 0
    parts: list[Buffer] = []
    _check_lengths(columns)
    if preamble is not None:
        flags |= PREAMBLE
        _check_bytes("preamble", preamble)
        _add(parts, len(preamble).to_bytes(4, "little") + bytes(preamble))
    _add(parts, columns.value_offsets)
    _add(parts, columns.value_data)
    if not columns.has_only_values:
        flags |= _add_optional(parts, columns)
    if producer is not None:
        flags |= HAS_PRODUCER
        _check_producer(producer)
    raw_length = sum(map(len, parts))
    if raw_length + HEADER_SIZE + PRODUCER_SIZE > ENTRY_LIMIT_BYTES:
        raise RecordTooLarge(f"an entry of {raw_length} bytes exceeds the limit of {ENTRY_LIMIT_BYTES}: nothing was sent")
    codec, body = compressor.compress(b"".join(parts))
    return EncodedEntry(flags | codec << CODEC_SHIFT, columns.count, raw_length, body, producer)


def _add_optional(parts: list[Buffer], columns: Columns) -> int:
    """Append the columns beside the values; returns their flags."""
    flags = 0
    for flag, pieces in (
        (TIMESTAMPS, (columns.timestamps_us,)),
        (TRANSACTION_IDS, (columns.transaction_ids,)),
        (KEYS, (columns.key_offsets, columns.key_data)),
        (HEADERS, (columns.header_offsets, columns.header_data)),
        (VALUE_VALIDITY, (columns.value_validity,)),
        (KEY_VALIDITY, (columns.key_validity,)),
    ):
        for piece in pieces:
            if piece is not None:
                flags |= flag
                _add(parts, piece)
    return flags


def encode_control(kind: str, fields: Mapping[str, Any]) -> EncodedEntry:
    """Make a control entry.

    Raises:
        ArgumentError: an unknown kind, or fields that are no JSON.
        RecordTooLarge: the fields exceed the limit of an entry.
    """
    if kind not in CONTROL_KINDS:
        raise ArgumentError(f"unknown kind of control record {kind!r}: choose one of {', '.join(CONTROL_KINDS)}")
    try:
        body = json.dumps({**fields, "kind": kind}, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"the fields of a control record must be JSON: {error}") from error
    if len(body) + HEADER_SIZE > ENTRY_LIMIT_BYTES:
        raise RecordTooLarge(f"a control record of {len(body)} bytes exceeds the limit of {ENTRY_LIMIT_BYTES}: nothing was sent")
    return EncodedEntry(CONTROL, 0, len(body), body, None, 1 + CONTROL_KINDS.index(kind))


NOOP = encode_control("noop", {})
"""The control entry that carries nothing."""


def _add(parts: list[Buffer], piece: Buffer) -> None:
    """Append a piece, padded to a multiple of 8. The last piece of a body needs no padding, but may have it."""
    parts.append(piece)
    if len(piece) & 7:
        parts.append(_PADDING[len(piece) & 7])


def _check_lengths(columns: Columns) -> None:
    count, size = columns.count, len(columns.value_data)
    fits = len(columns.value_offsets) == 4 * (count + 1) and int.from_bytes(columns.value_offsets[-4:], "little") == size
    if fits and columns.has_only_values:
        return
    for name, buffer, size in (
        ("value_offsets", columns.value_offsets, 4 * (count + 1)),
        ("timestamps_us", columns.timestamps_us, 8 * count),
        ("transaction_ids", columns.transaction_ids, 8 * count),
        ("key_offsets", columns.key_offsets, 4 * (count + 1)),
        ("header_offsets", columns.header_offsets, 4 * (count + 1)),
        ("value_validity", columns.value_validity, (count + 7) // 8),
        ("key_validity", columns.key_validity, (count + 7) // 8),
    ):
        if buffer is not None and len(buffer) != size:
            raise ArgumentError(f"{name} has {len(buffer)} bytes; {count} records need {size}")
    for name, offsets, data in (
        ("value", columns.value_offsets, columns.value_data),
        ("key", columns.key_offsets, columns.key_data),
        ("header", columns.header_offsets, columns.header_data),
    ):
        if (offsets is None) != (data is None):
            raise ArgumentError(f"{name} offsets and {name} data go together")
        if offsets is not None and data is not None and int.from_bytes(offsets[-4:], "little") != len(data):
            raise ArgumentError(f"{name} data has {len(data)} bytes, its last offset is another")


def _check_producer(producer: Producer) -> None:
    if len(producer.id) != 16 or not 0 <= producer.epoch < 2**32 or not 0 <= producer.sequence < 2**64:
        raise ArgumentError(f"a producer has an id of 16 bytes, an epoch of 32 bits and a sequence number of 64 bits: {producer}")


def add_headers(columns: Columns, encoded: Sequence[bytes | None]) -> None:
    """Give each record of some columns its headers, as `encode_record_headers` made them; None for a record without."""
    columns.header_offsets, columns.header_data, _ = _binary_column([item or _NO_BYTES for item in encoded])


def record_cost(value: Buffer | None, key: Buffer | None = None, headers: bytes | None = None) -> int:
    """Bytes that a record adds to a raw body, at most: data, offsets and a timestamp."""
    cost = 16 + (len(value) if value is not None else 0) + (8 + len(key) if key is not None else 0)
    return cost if headers is None else cost + 4 + len(headers)


def checked_cost(value: Buffer | None, key: Buffer | None, headers: bytes | None) -> int:
    """As `record_cost`.

    Raises:
        RecordTooLarge: no entry holds it. ArgumentError: value or key are no bytes.
    """
    if type(value) is not bytes:
        _check_bytes("value", value)
    if key is not None and type(key) is not bytes:
        _check_bytes("key", key)
    cost = record_cost(value, key, headers)
    if cost + ENTRY_COST_BYTES > ENTRY_LIMIT_BYTES:
        size = sum(len(part) for part in (value, key, headers) if part is not None)
        limit = ENTRY_LIMIT_BYTES - ENTRY_COST_BYTES - (cost - size)
        raise RecordTooLarge(
            f"a record has {size} bytes; value, key and headers have at most {limit} together (a header 6 beside its own): nothing was sent"
        )
    return cost


def _check_bytes(what: str, part: Buffer | None) -> None:
    """Raises ArgumentError: the part of a record is no sequence of bytes, so that its entry could not be made."""
    if part is None or isinstance(part, bytes | bytearray):
        return
    if not isinstance(part, memoryview) or part.itemsize != 1 or part.ndim != 1 or not part.contiguous:
        raise ArgumentError(
            f"the {what} of a record is bytes, a bytearray or a plain memoryview of bytes, and no {type(part).__name__}: nothing was sent"
        )


def check_timestamp(timestamp_us: int) -> None:
    """Raises ArgumentError: a record cannot have this timestamp."""
    try:
        _TIMESTAMP.pack(timestamp_us)
    except struct.error as error:
        raise ArgumentError(f"a timestamp is a signed 64-bit number of microseconds, and not {timestamp_us!r}: nothing was sent") from error


def entry_cuts(
    values: Sequence[Buffer | None], keys: Sequence[Buffer | None] | None, target_bytes: int, headers: Sequence[bytes] | None = None
) -> Iterator[slice]:
    """Cut records into entries of about a size.

    Raises:
        RecordTooLarge: no entry holds one of them. ArgumentError: one is no bytes.
    """
    start = size = 0
    for place, value in enumerate(values):
        cost = checked_cost(value, keys[place] if keys is not None else None, headers[place] if headers is not None else None)
        if place > start and size + cost > target_bytes:
            yield slice(start, place)
            start, size = place, 0
        size += cost
    if start < len(values):
        yield slice(start, len(values))


def columns_cut(
    values: Sequence[Buffer | None],
    keys: Sequence[Buffer | None] | None,
    timestamps_us: Sequence[int] | None,
    headers: Sequence[RecordHeaders] | None,
    target_bytes: int,
) -> Iterator[Columns]:
    """Encode records into as many entries of about `size_bytes` as they need. Each entry is made when the iterator reaches it.

    Raises, at the call:
        RecordTooLarge: no entry holds one of them. ArgumentError: one is no bytes, or sequences of different lengths.
    """
    for name, column in (("keys", keys), ("timestamps_us", timestamps_us), ("headers", headers)):
        if column is not None and len(column) != len(values):
            raise ArgumentError(f"{name} has {len(column)} items for {len(values)} records")
    encoded = None if headers is None else [encode_record_headers(item) for item in headers]
    # A record that is too large is found before anything is sent.
    cuts = list(entry_cuts(values, keys, target_bytes, encoded))

    def made(cut: slice) -> Columns:
        cut_times = None if timestamps_us is None else timestamps_us[cut]
        columns = columns_of(values[cut], keys=None if keys is None else keys[cut], timestamps_us=cut_times)
        if encoded is not None:
            add_headers(columns, encoded[cut])
        return columns

    return map(made, cuts)


def wall_time_after(previous_us: int, clock_us: int) -> int:
    """The wall time of the next entry: the clock's, but never before that of the previous entry."""
    return max(previous_us, clock_us)
