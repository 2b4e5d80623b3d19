"""Requests that a bookie cannot serve, with its answers."""

from __future__ import annotations

import struct

from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import (
    BOOKIE_FRAME_BYTES,
    AddRequest,
    AddResponse,
    BatchReadRequest,
    ReadRequest,
    ReadResponse,
    Status,
    encode_frame,
    encode_request,
    v3,
)

MIB = 1024 * 1024


KEY = EntryCodec(1, DigestType.CRC32C, b"").master_key


UNKNOWN_LEDGER = 2**40


def _entry(ledger_id: int, entry_id: int) -> bytes:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"").encode(entry_id, -1, 4, b"data")


def add_request(ledger_id: int = 1, entry_id: int = 0) -> AddRequest:
    return AddRequest(ledger_id, entry_id, KEY, _entry(ledger_id, entry_id))


def _v2(word: int, rest: bytes) -> bytes:
    return encode_frame(struct.pack(">I", word) + rest)


def _v3(*fields: bytes) -> bytes:
    return encode_frame(b"".join(fields))


def _header(version: int = 3, operation: int = 1, txn_id: int = 5) -> bytes:
    return bytes([0x0A, 6, 0x08, version, 0x10, operation, 0x18, txn_id])


_IDS = struct.pack(">qq", 9, 4)


CLOSING: dict[str, bytes] = {
    "a frame over the limit": struct.pack(">I", BOOKIE_FRAME_BYTES) + b"\x02\x02\x00\x00",
    "a negative length": b"\xff\xff\xff\xff\x02\x02\x00\x00",
    "the least negative length": b"\x80\x00\x00\x00",
    "an empty frame": struct.pack(">I", 0),
    "a frame shorter than its header": encode_frame(b"\x02\x01"),
    "an add cut short in its key": _v2(0x02010000, KEY[:7]),
    "an add cut short in its ids": _v2(0x02010000, KEY + _entry(1, 0)[:15]),
    "a read cut short": _v2(0x02020000, _IDS[:9]),
    "a fencing read without its key": _v2(0x02020001, _IDS),
    "a batch read cut short": _v2(0x02070000, _IDS),
    "an unknown operation": _v2(0x02090000, _IDS),
    "an operation that has no older form": _v2(0x02040000, _IDS),
    "an unknown operation of an unknown version": _v2(0x09090000, _IDS),
    "garbage that begins as version 3 does": encode_frame(b"\x0a\xff\xff\xff\xff\xff garbage"),
    "a header of version 3 alone, cut short": encode_frame(b"\x0a\x06\x08\x03"),
    "version 3 without a transaction": _v3(b"\x0a\x04\x08\x03\x10\x01", b"\xa2\x06\x04\x08\x01\x10\x01"),
    "version 3 with a read that lacks its entry": _v3(_header(), b"\xa2\x06\x02\x08\x01"),
    "version 3 with a read whose length is negative": _v3(_header(), b"\xa2\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x08\x01"),
    # Apache's bookie cannot parse these, although they are valid messages.
    "version 3 with an operation that does not exist": _v3(_header(operation=99)),
    "version 3 with a version that does not exist": _v3(_header(version=9), b"\xa2\x06\x04\x08\x09\x10\x04"),
    "version 3 with a read without its part": _v3(_header()),
    "an authentication of garbage": _v2(0x02030000, b"\xff\xff\xff"),
}


ANSWERED_V2: dict[str, tuple[bytes, bytes]] = {
    "an add of an unknown version": (_v2(0x09010000, KEY + _entry(9, 4)), struct.pack(">II", 0x09010000, 103) + _IDS),
    "a read of an unknown version": (_v2(0x7F020000, _IDS), struct.pack(">II", 0x7F020000, 103) + _IDS),
    "a read of a negative version": (_v2(0xFF020000, _IDS), struct.pack(">II", 0xFF020000, 103) + _IDS),
    "a read with unknown flags": (_v2(0x0202FFF8, _IDS), struct.pack(">II", 0x02020000, 1) + _IDS),
    "a read of a negative ledger": (
        encode_request(ReadRequest(-9, 4)),
        struct.pack(">IIqq", 0x02020000, 1, -9, 4),
    ),
    "an add cut short in its entry": (_v2(0x02010000, KEY + _entry(9, 4)[:20]), struct.pack(">II", 0x02010000, 100) + _IDS),
    "an add to a negative ledger": (encode_request(add_request(-9, 4)), struct.pack(">IIqq", 0x02010000, 100, -9, 4)),
    "a batch read of an unknown ledger": (
        encode_request(BatchReadRequest(UNKNOWN_LEDGER, 0, 42, -1, -1)),
        struct.pack(">IIqqq", 0x02070000, 1, UNKNOWN_LEDGER, 0, 42),
    ),
}


def _refused_add(status: Status) -> bytes:
    return v3.encode_response(AddResponse(status, 9, 4), 5)[4:]


ANSWERED_V3: dict[str, tuple[bytes, bytes]] = {
    "an operation that no bookie serves": (_v3(_header(operation=3)), bytes.fromhex("0a06080310031805109403")),
    "a read of version 2": (
        _v3(_header(version=2), b"\xa2\x06\x04\x08\x09\x10\x04"),
        v3.encode_response(ReadResponse(Status.BAD_VERSION, 9, 4), 5)[4:],
    ),
    "an add with a key of one byte": (
        _v3(_header(operation=2), b"\xaa\x06", bytes([9 + len(_entry(9, 4))]), b"\x08\x09\x10\x04\x1a\x01k\x22", bytes([40]), _entry(9, 4)),
        _refused_add(Status.UNAUTHORIZED),
    ),
    "an add whose entry is another one": (
        _v3(
            _header(operation=2),
            bytes([0xAA, 0x06, 28 + len(_entry(9, 5)), 0x08, 9, 0x10, 4, 0x1A, 20]),
            KEY,
            bytes([0x22, len(_entry(9, 5))]),
            _entry(9, 5),
        ),
        _refused_add(Status.BAD_REQUEST),
    ),
    "a read with an unknown flag": (
        _v3(_header(), b"\xa2\x06\x07\x08\x09\x10\x04\xa0\x06\x63"),
        v3.encode_response(ReadResponse(Status.NO_LEDGER, 9, 4), 5)[4:],
    ),
}
