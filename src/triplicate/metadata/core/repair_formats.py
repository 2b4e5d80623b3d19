"""The formats of the under-replication tree: protobuf text, except for the times of the checks, which are binary.

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
    """Raises FormatError: the under-replication tree has an unknown layout."""
    found = _parsed(LedgerRereplicationLayoutFormat(), data, "the layout of the under-replication tree")
    if (found.type, found.version) != (LAYOUT_TYPE, LAYOUT_VERSION):
        raise FormatError(
            f"the under-replication tree has layout {found.type}:{found.version}; known is {LAYOUT_TYPE}:{LAYOUT_VERSION} only"
        )


def encode_mark(missing: tuple[str, ...], ctime_ms: int | None) -> bytes:
    """The node of an under-replicated ledger: the bookies that lack their copies, in the order of detection."""
    return _text(UnderreplicatedLedgerFormat(replica=missing, ctime=ctime_ms))


def decode_mark(data: bytes) -> tuple[tuple[str, ...], int | None]:
    """The bookies that lack their copies, and the creation time of the node in ms since the epoch. Raises FormatError."""
    found = _parsed(UnderreplicatedLedgerFormat(), data, "a mark of an under-replicated ledger")
    return tuple(found.replica), found.ctime if found.HasField("ctime") else None


def encode_lock(worker: str) -> bytes:
    """The lock of a worker. BookKeeper's workers write their host name."""
    return _text(LockDataFormat(bookieId=worker))


def decode_lock(data: bytes) -> str:
    """The name of the worker; empty if it has none. Raises FormatError."""
    return _parsed(LockDataFormat(), data, "a lock of an under-replicated ledger").bookieId


def encode_vote(bookie_id: str) -> bytes:
    """A vote, and the content of the node above the votes that the elected auditor writes."""
    return _text(AuditorVoteFormat(bookieId=bookie_id))


def decode_vote(data: bytes) -> str:
    """The bookie id of the candidate. Raises FormatError."""
    return _parsed(AuditorVoteFormat(), data, "an auditor's vote").bookieId


def encode_check_time(ctime_ms: int) -> bytes:
    """The time of a check's last run, binary."""
    return CheckTimeFormat(ctime=ctime_ms).SerializeToString()


def decode_check_time(data: bytes) -> int | None:
    """The time of a check's last run in ms since the epoch, or None if the node has no time. Raises FormatError."""
    message = CheckTimeFormat()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise FormatError(f"not the time of a check: {data!r} ({error})") from error
    return message.ctime if message.HasField("ctime") else None


def _text(message: Message) -> bytes:
    return text_format.MessageToString(message, as_utf8=False).encode("ascii")


def _parsed(message: Read, data: bytes, what: str) -> Read:
    """Parse text into the message. Fields added by later releases are ignored."""
    try:
        text_format.Parse(data.decode("utf-8"), message, allow_unknown_field=True)
    except (ValueError, text_format.ParseError) as error:
        raise FormatError(f"not {what}: {data!r} ({error})") from error
    return message
