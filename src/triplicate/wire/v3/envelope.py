"""The common parts of requests and answers of protocol version 3: operations, the request's envelope, careful parsing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from triplicate.errors import ProtocolError
from triplicate.wire import bookkeeper_protocol_pb2 as pb
from triplicate.wire.messages import Request, Status

VERSION = 3

AUTH_DISABLED = "AuthDisabledPlugin"
"""The plugin that a bookie without authentication names in its answer to any token; for a client this is a success."""


class OperationType(IntEnum):
    """The operations that a bookie serves over version 3."""

    READ = 1
    ADD = 2
    AUTH = 5
    WRITE_LAC = 6
    READ_LAC = 7
    BOOKIE_INFO = 8
    START_TLS = 9
    FORCE = 10
    LIST_ENTRIES = 11


@dataclass(slots=True)
class V3Request:
    """A request with its envelope."""

    txn_id: int
    request: Request | None
    """None when the operation is unknown (ranges and batch reads among them) or its part of the message is missing."""
    operation: int
    version: int = VERSION
    priority: int | None = None
    refusal: Status | None = None
    """Why not to serve it: `BAD_REQUEST`, `BAD_VERSION`, or `UNAUTHORIZED` for a master key that no ledger can have. None: serve it."""


def is_v3(body: bytes) -> bool:
    """Whether a body is of version 3, which begins with the tag of its header. A body of version 2 begins with the version."""
    return body[:1] == b"\x0a"


_M = TypeVar("_M", pb.Request, pb.Response)


def parse(message: _M, body: bytes, subject: str) -> _M:
    """Fill an empty message.

    Raises:
        ProtocolError: the body is damaged, or a required field is missing; the parser itself accepts that.
    """
    try:
        message.ParseFromString(body)
    except DecodeError as error:
        raise ProtocolError(f"{subject} of protocol version 3 is damaged: {error}") from error
    if not message.IsInitialized():
        raise ProtocolError(f"{subject} of protocol version 3 lacks a field that it must have")
    return message


def token_of(auth: Any) -> tuple[str, bytes]:
    """Plugin and token of an authentication message.

    Raises:
        ProtocolError: the plugin's name is not UTF-8.
    """
    plugin, payload = auth.authPluginName, auth.payload
    if not isinstance(plugin, str):
        # The protobuf library hands out plain bytes where a proto2 string is not UTF-8.
        raise ProtocolError(f"an authentication message names the plugin {plugin!r}, which is not UTF-8")
    return plugin, payload


def set_header(header: pb.BKPacketHeader, operation: int, txn_id: int, priority: int | None = None, version: int = VERSION) -> None:
    header.version = version
    header.operation = operation
    header.txnId = txn_id
    if priority is not None:
        header.priority = priority
