"""What the nodes of the under-replication tree hold: protobuf's text for everything but the times of the checks, which are binary.

Source: BookKeeper `ZkLedgerUnderreplicationManager`, `ZkLedgerAuditorManager`, DataFormats.proto.
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from triplicate.errors import FormatError
from triplicate.metadata.core.bookkeeper_pb2 import (
    AuditorVoteFormat,
    CheckTimeFormat,
    LedgerRereplicationLayoutFormat,
    LockDataFormat,
    UnderreplicatedLedgerFormat,
)

LAYOUT_TYPE = "BASIC"
LAYOUT_VERSION = 1

Read = TypeVar("Read", bound=Message)


def encode_repair_layout() -> bytes:
    """The node ``underreplication/LAYOUT``."""
    return _text(LedgerRereplicationLayoutFormat(type=LAYOUT_TYPE, version=LAYOUT_VERSION))


def check_repair_layout(data: bytes) -> None:
    """Raises FormatError: the under-replication tree has another layout than the one known here."""
    found = _parsed(LedgerRereplicationLayoutFormat(), data, "the layout of the under-replication tree")
    if (found.type, found.version) != (LAYOUT_TYPE, LAYOUT_VERSION):
        raise FormatError(
            f"the under-replication tree has layout {found.type}:{found.version}; known is {LAYOUT_TYPE}:{LAYOUT_VERSION} only"
        )


def encode_mark(missing: tuple[str, ...], ctime_ms: int | None) -> bytes:
    """The mark of a ledger: the bookies that lack their copies, in the order in which they were found lost."""
    return _text(UnderreplicatedLedgerFormat(replica=missing, ctime=ctime_ms))


def decode_mark(data: bytes) -> tuple[tuple[str, ...], int | None]:
    """The bookies that lack their copies, and the time of the mark in ms. Raises FormatError."""
    found = _parsed(UnderreplicatedLedgerFormat(), data, "a mark of an under-replicated ledger")
    return tuple(found.replica), found.ctime if found.HasField("ctime") else None


def encode_lock(worker: str) -> bytes:
    """The lock of a worker; BookKeeper's own write the name of their machine."""
    return _text(LockDataFormat(bookieId=worker))


def decode_lock(data: bytes) -> str:
    """The worker; empty where it has no name. Raises FormatError."""
    return _parsed(LockDataFormat(), data, "a lock of an under-replicated ledger").bookieId


def encode_vote(bookie_id: str) -> bytes:
    """A vote, and what the elected one writes into the node above the votes."""
    return _text(AuditorVoteFormat(bookieId=bookie_id))


def decode_vote(data: bytes) -> str:
    """Whose vote it is. Raises FormatError."""
    return _parsed(AuditorVoteFormat(), data, "an auditor's vote").bookieId


def encode_check_time(ctime_ms: int) -> bytes:
    """When a check ran, binary."""
    return CheckTimeFormat(ctime=ctime_ms).SerializeToString()


def decode_check_time(data: bytes) -> int | None:
    """When a check ran, in ms, or None where the node does not say. Raises FormatError."""
    message = CheckTimeFormat()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise FormatError(f"not the time of a check: {data!r} ({error})") from error
    return message.ctime if message.HasField("ctime") else None


def _text(message: Message) -> bytes:
    return text_format.MessageToString(message, as_utf8=False).encode("ascii")


def _parsed(message: Read, data: bytes, what: str) -> Read:
    """Fill the message; fields that a later release added are passed over."""
    try:
        text_format.Parse(data.decode("utf-8"), message, allow_unknown_field=True)
    except (ValueError, text_format.ParseError) as error:
        raise FormatError(f"not {what}: {data!r} ({error})") from error
    return message
