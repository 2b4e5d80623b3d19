"""Messages made of a fuzzer's fields: every kind of request and answer, also ones that cannot be sent."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.fields import Fields
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import (
    AddRequest,
    AddResponse,
    AuthRequest,
    AuthResponse,
    BatchReadRequest,
    BatchReadResponse,
    BookieInfoRequest,
    BookieInfoResponse,
    ForceRequest,
    ForceResponse,
    ListEntriesRequest,
    ListEntriesResponse,
    ReadLacRequest,
    ReadLacResponse,
    ReadRequest,
    ReadResponse,
    Request,
    Response,
    StartTlsRequest,
    StartTlsResponse,
    Status,
    WriteLacRequest,
    WriteLacResponse,
)

STATUSES = tuple(Status)
KEY = bytes(range(20))


def entry_of(ledger_id: int, entry_id: int, last_add_confirmed: int, payload: bytes) -> bytes:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"").encode(entry_id, last_add_confirmed, len(payload), payload)


def master_key(fields: Fields) -> bytes:
    """A master key, mostly of 20 bytes, as of every ledger."""
    kind = fields.byte()
    return KEY if kind < 192 else fields.take(20).ljust(20, b"k") if kind < 240 else fields.blob()


def optional(fields: Fields) -> int | None:
    return fields.integer() if fields.flag() else None


def optional_blob(fields: Fields) -> bytes | None:
    return fields.blob() if fields.flag() else None


def status_of(fields: Fields) -> Status:
    return STATUSES[fields.byte() % len(STATUSES)]


def text(fields: Fields) -> str:
    return fields.blob(40).decode("utf-8", "replace")


def add_request(fields: Fields) -> AddRequest:
    ledger_id, entry_id, flags = fields.integer(), fields.integer(), fields.byte()
    key = master_key(fields)
    body = fields.blob() if flags & 128 else entry_of(ledger_id, entry_id, fields.integer(), fields.blob())
    return AddRequest(ledger_id, entry_id, key, body, bool(flags & 1), bool(flags & 2), bool(flags & 4))


def read_request(fields: Fields) -> ReadRequest:
    ledger_id, entry_id, flags = fields.integer(), fields.integer(), fields.byte()
    fence = bool(flags & 1)
    key = master_key(fields) if fence and not flags & 128 else None
    return ReadRequest(ledger_id, entry_id, fence, key, bool(flags & 2), optional(fields), optional(fields), bool(flags & 4))


def batch_read_request(fields: Fields) -> BatchReadRequest:
    ledger_id, start, request_id, most = fields.integer(), fields.integer(), fields.integer(), fields.integer()
    fence = fields.flag()
    count = fields.integer() % 2**32 - 2**31
    return BatchReadRequest(ledger_id, start, request_id, count, most, fence, master_key(fields) if fence else None)


def write_lac_request(fields: Fields) -> WriteLacRequest:
    ledger_id, confirmed = fields.integer(), fields.integer()
    codec = EntryCodec(ledger_id, DigestType.CRC32C, b"")
    record = fields.blob() if fields.byte() & 128 else codec.encode_lac(confirmed)
    return WriteLacRequest(ledger_id, confirmed, master_key(fields), record)


REQUESTS: tuple[Callable[[Fields], Request], ...] = (
    add_request,
    read_request,
    batch_read_request,
    lambda fields: AuthRequest(text(fields), fields.blob()),
    write_lac_request,
    lambda fields: ReadLacRequest(fields.integer()),
    lambda fields: ForceRequest(fields.integer()),
    lambda fields: BookieInfoRequest(fields.integer()),
    lambda fields: ListEntriesRequest(fields.integer()),
    lambda fields: StartTlsRequest(),
)


def add_response(fields: Fields) -> AddResponse:
    return AddResponse(status_of(fields), fields.integer(), fields.integer())


def read_response(fields: Fields) -> ReadResponse:
    status, ledger_id, entry_id = status_of(fields), fields.integer(), fields.integer()
    return ReadResponse(status, ledger_id, entry_id, optional_blob(fields), optional(fields), optional(fields))


def batch_read_response(fields: Fields) -> BatchReadResponse:
    status, ledger_id, start, request_id = status_of(fields), fields.integer(), fields.integer(), fields.integer()
    return BatchReadResponse(status, ledger_id, start, request_id, tuple(fields.blob() for _ in range(fields.byte() % 8)))


RESPONSES: tuple[Callable[[Fields], Response], ...] = (
    add_response,
    read_response,
    batch_read_response,
    lambda fields: AuthResponse(status_of(fields), text(fields), fields.blob()),
    lambda fields: WriteLacResponse(status_of(fields), fields.integer()),
    lambda fields: ReadLacResponse(status_of(fields), fields.integer(), optional_blob(fields), optional_blob(fields)),
    lambda fields: ForceResponse(status_of(fields), fields.integer()),
    lambda fields: BookieInfoResponse(status_of(fields), optional(fields), optional(fields)),
    lambda fields: ListEntriesResponse(status_of(fields), fields.integer(), optional_blob(fields)),
    lambda fields: StartTlsResponse(status_of(fields)),
)


def any_request(fields: Fields) -> Request:
    return REQUESTS[fields.byte() % len(REQUESTS)](fields)


def any_response(fields: Fields) -> Response:
    return RESPONSES[fields.byte() % len(RESPONSES)](fields)
