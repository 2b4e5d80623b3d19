"""Adds larger than the frame limit: their ids are read from the first bytes, so that they can be refused without the rest.

Other requests are small, so a large frame that is no add comes from a peer with another protocol.
"""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import DecodeError

from triplicate.wire import bookkeeper_protocol_pb2 as pb
from triplicate.wire.frames import LENGTH_BYTES
from triplicate.wire.messages import AddResponse, Status
from triplicate.wire.v2 import ADD, ADD_IDS, CURRENT_VERSION, encode_response, split_header
from triplicate.wire.v3.envelope import VERSION, OperationType, is_v3
from triplicate.wire.v3.responses import encode_response as encode_v3_response

OVERSIZED_HEAD_BYTES = 128
"""The first bytes of a frame, with its length, that contain the ids of an add in either version."""

TOO_LARGE = Status.UNAUTHORIZED
"""The answer to an add that is too large. Of the protocol's statuses only this one and "fenced" end a writer of Apache's client; after
any other it replaces the bookie, and the next bookie refuses the same entry. "Fenced" would say that a recovery is under way."""

_ADD_TAG = b"\xaa\x06"
_LEDGER_TAG = 0x08
_ENTRY_TAG = 0x10
_VARINT_BYTES = 9


class OversizedAdd(NamedTuple):
    """An add that is refused for its size."""

    ledger_id: int
    entry_id: int
    refusal: bytes
    """The frame of the answer."""


def may_be_add(head: bytes) -> bool:
    """Whether a frame that begins with these bytes may be an add; the bytes may be incomplete."""
    body = head[LENGTH_BYTES : LENGTH_BYTES + 4]
    if len(body) < 4 or is_v3(body):
        return True
    version, operation, _ = split_header(body)
    return operation == ADD and version <= CURRENT_VERSION


def oversized_v2_add(head: bytes) -> OversizedAdd | None:
    """The add of version 0, 1 or 2 that begins with `head` (a frame's first `OVERSIZED_HEAD_BYTES`); None when it is no add."""
    if is_v3(head[LENGTH_BYTES:]) or not may_be_add(head):
        return None
    version, _, _ = split_header(head[LENGTH_BYTES:])
    ledger_id, entry_id = ADD_IDS.unpack_from(head, LENGTH_BYTES)
    return OversizedAdd(ledger_id, entry_id, encode_response(AddResponse(TOO_LARGE, ledger_id, entry_id), version))


def oversized_v3_add(head: bytes) -> OversizedAdd | None:
    """The add of version 3 that begins with `head`; None when it is no add, or its ids are not where BookKeeper's client puts them."""
    if not is_v3(head[LENGTH_BYTES:]):
        return None
    header = pb.BKPacketHeader()
    header_size, start = _varint(head, LENGTH_BYTES + 1)
    end = start + header_size
    if header_size < 0 or end > len(head):
        return None
    try:
        header.ParseFromString(head[start:end])
    except DecodeError:
        return None
    if (
        not header.IsInitialized()
        or header.operation != OperationType.ADD
        or header.version != VERSION
        or not head.startswith(_ADD_TAG, end)
    ):
        return None
    _, position = _varint(head, end + len(_ADD_TAG))
    ledger_id, position = _tagged(head, position, _LEDGER_TAG)
    entry_id, position = _tagged(head, position, _ENTRY_TAG)
    if ledger_id < 0 or entry_id < 0:
        return None
    return OversizedAdd(ledger_id, entry_id, encode_v3_response(AddResponse(TOO_LARGE, ledger_id, entry_id), header.txnId))


def _tagged(head: bytes, position: int, tag: int) -> tuple[int, int]:
    """The number after a tag, and its end; the number is -1 if another tag is there."""
    if position < 0 or position >= len(head) or head[position] != tag:
        return -1, -1
    return _varint(head, position + 1)


def _varint(head: bytes, position: int) -> tuple[int, int]:
    """A number of at most 63 bits, and its end; the number is -1 if it is longer, or if the head ends within it."""
    value = 0
    for index in range(_VARINT_BYTES):
        if position + index >= len(head):
            break
        byte = head[position + index]
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value, position + index + 1
    return -1, -1
