"""Encoding and decoding of answers of protocol version 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.errors import ArgumentError, ProtocolError
from triplicate.wire import bookkeeper_protocol_pb2 as pb
from triplicate.wire.frames import encode_frame
from triplicate.wire.messages import (
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
    StartTlsResponse,
    Status,
    WriteLacRequest,
    WriteLacResponse,
)
from triplicate.wire.status import status_from_v3
from triplicate.wire.v3.envelope import OperationType, V3Request, parse, set_header, token_of

NO_ID = -1
"""Ledger and entry id of a decoded answer that carries none."""

# Answers, written.


def encode_response(response: Response, txn_id: int) -> bytes:
    """The frame of an answer: status in the envelope, and the operation's own part with status and ids, also when it failed.

    An entry is written only with the status OK. The records of a read of the last-add-confirmed are written with every status.

    Raises:
        ArgumentError: version 3 has no such answer, a number does not fit, or information about the bookie lacks a figure: BookKeeper's
            client reads both.
    """
    writer = _RESPONSE_WRITERS.get(type(response))
    if writer is None:
        raise ArgumentError(f"protocol version 3 has no {type(response).__name__}; answer over version 2")
    operation, write = writer
    try:
        message = pb.Response(status=response.status)
        set_header(message.header, operation, txn_id)
        write(message, response)
    except ArgumentError:
        raise
    except ValueError as error:
        raise ArgumentError(f"a {type(response).__name__} cannot be written: {error}") from error
    return encode_frame(message.SerializeToString(deterministic=True))


def encode_unauthenticated(envelope: V3Request) -> bytes:
    """The answer to anything but a token of the right plugin before a connection is authenticated: a status, no part of its own."""
    return _status_alone(envelope, Status.UNAUTHORIZED)


def encode_unknown_operation(envelope: V3Request) -> bytes:
    """The answer to a request whose operation no bookie serves: a status, no part of its own."""
    return _status_alone(envelope, Status.BAD_REQUEST)


def _status_alone(envelope: V3Request, status: Status) -> bytes:
    """These answers repeat the request's whole header, as BookKeeper's do."""
    message = pb.Response(status=status)
    set_header(message.header, envelope.operation, envelope.txn_id, envelope.priority, envelope.version)
    return encode_frame(message.SerializeToString(deterministic=True))


def encode_refusal(envelope: V3Request, status: Status) -> bytes:
    """The frame that refuses a request of any kind."""
    if envelope.request is None:
        return _status_alone(envelope, status)
    return encode_response(refusal_of(envelope.request, status), envelope.txn_id)


def refusal_of(request: Request, status: Status) -> Response:
    """The answer that refuses a request with its own ids, without regard to the version that carries it."""
    if isinstance(request, AddRequest):
        return AddResponse(status, request.ledger_id, request.entry_id)
    if isinstance(request, ReadRequest):
        return ReadResponse(status, request.ledger_id, request.entry_id)
    if isinstance(request, BatchReadRequest):
        return BatchReadResponse(status, request.ledger_id, request.start_entry_id, request.request_id)
    if isinstance(request, AuthRequest):
        return AuthResponse(status, request.plugin, b"")
    if isinstance(request, WriteLacRequest):
        return WriteLacResponse(status, request.ledger_id)
    if isinstance(request, ReadLacRequest):
        return ReadLacResponse(status, request.ledger_id)
    if isinstance(request, ForceRequest):
        return ForceResponse(status, request.ledger_id)
    if isinstance(request, ListEntriesRequest):
        return ListEntriesResponse(status, request.ledger_id)
    return BookieInfoResponse(status) if isinstance(request, BookieInfoRequest) else StartTlsResponse(status)


def _write_add_answer(message: pb.Response, response: AddResponse) -> None:
    add = message.addResponse
    add.status = response.status
    add.ledgerId = response.ledger_id
    add.entryId = response.entry_id


def _write_read_answer(message: pb.Response, response: ReadResponse) -> None:
    read = message.readResponse
    read.status = response.status
    read.ledgerId = response.ledger_id
    read.entryId = response.entry_id
    if response.body is not None and response.status is Status.OK:
        read.body = response.body
    if response.max_lac is not None:
        read.maxLAC = response.max_lac
    if response.lac_update_ms is not None:
        read.lacUpdateTimestamp = response.lac_update_ms


def _write_auth_answer(message: pb.Response, response: AuthResponse) -> None:
    message.authResponse.authPluginName = response.plugin
    message.authResponse.payload = response.payload


def _write_write_lac_answer(message: pb.Response, response: WriteLacResponse) -> None:
    message.writeLacResponse.status = response.status
    message.writeLacResponse.ledgerId = response.ledger_id


def _write_read_lac_answer(message: pb.Response, response: ReadLacResponse) -> None:
    lac = message.readLacResponse
    lac.status = response.status
    lac.ledgerId = response.ledger_id
    if response.lac_body is not None:
        lac.lacBody = response.lac_body
    if response.last_entry_body is not None:
        lac.lastEntryBody = response.last_entry_body


def _write_bookie_info_answer(message: pb.Response, response: BookieInfoResponse) -> None:
    info = message.getBookieInfoResponse
    info.status = response.status
    if response.total_bytes is None or response.free_bytes is None:
        if response.status is Status.OK:
            raise ArgumentError("total_bytes and free_bytes: information about a bookie has both, even if only one was requested")
        return
    info.totalDiskCapacity = response.total_bytes
    info.freeDiskSpace = response.free_bytes


def _write_start_tls_answer(message: pb.Response, response: StartTlsResponse) -> None:
    if response.status is Status.OK:
        message.startTLSResponse.SetInParent()


def _write_force_answer(message: pb.Response, response: ForceResponse) -> None:
    message.forceLedgerResponse.status = response.status
    message.forceLedgerResponse.ledgerId = response.ledger_id


def _write_list_answer(message: pb.Response, response: ListEntriesResponse) -> None:
    entries = message.getListOfEntriesOfLedgerResponse
    entries.status = response.status
    entries.ledgerId = response.ledger_id
    if response.availability is not None:
        entries.availabilityOfEntriesOfLedger = response.availability


_RESPONSE_WRITERS: dict[type, tuple[OperationType, Callable[[pb.Response, Any], None]]] = {
    ReadResponse: (OperationType.READ, _write_read_answer),
    AddResponse: (OperationType.ADD, _write_add_answer),
    AuthResponse: (OperationType.AUTH, _write_auth_answer),
    WriteLacResponse: (OperationType.WRITE_LAC, _write_write_lac_answer),
    ReadLacResponse: (OperationType.READ_LAC, _write_read_lac_answer),
    BookieInfoResponse: (OperationType.BOOKIE_INFO, _write_bookie_info_answer),
    StartTlsResponse: (OperationType.START_TLS, _write_start_tls_answer),
    ForceResponse: (OperationType.FORCE, _write_force_answer),
    ListEntriesResponse: (OperationType.LIST_ENTRIES, _write_list_answer),
}


# Answers, read.


def decode_response(body: bytes) -> tuple[int, Response]:
    """(transaction, answer) in a body.

    The status is the envelope's unless that is OK, else the answer's own; a code that this release does not know is an I/O error. Where
    the answer's own part is missing, its ids are `NO_ID` (the transaction identifies the request), and a status of OK counts as an I/O
    error, since nothing confirms the operation; only the answer to `StartTlsRequest` needs no part. A read that succeeded may lack its
    entry: the answer of a long poll without news.

    Raises:
        ProtocolError: not an answer, or one to an operation that this client never requests; close the connection.
    """
    message = parse(pb.Response(), body, "an answer")
    header = message.header
    reader = _RESPONSE_READERS.get(header.operation)
    if reader is None:
        raise ProtocolError(f"an answer to operation {header.operation}, which is never asked for over protocol version 3")
    field, read = reader
    if message.HasField(field):
        return header.txnId, read(message.status, getattr(message, field))
    status = _status_of(message.status, 0)
    if status is Status.OK and header.operation != OperationType.START_TLS:
        status = Status.IO_ERROR
    return header.txnId, _WITHOUT_PART[OperationType(header.operation)](status)


def _status_of(top: int, inner: int) -> Status:
    return status_from_v3(top or inner)


def _read_read_answer(top: int, read: pb.ReadResponse) -> ReadResponse:
    status = _status_of(top, read.status)
    return ReadResponse(
        status,
        read.ledgerId,
        read.entryId,
        read.body if status is Status.OK and read.HasField("body") else None,
        read.maxLAC if read.HasField("maxLAC") else None,
        read.lacUpdateTimestamp if read.HasField("lacUpdateTimestamp") else None,
    )


def _read_add_answer(top: int, add: pb.AddResponse) -> AddResponse:
    return AddResponse(_status_of(top, add.status), add.ledgerId, add.entryId)


def _read_auth_answer(top: int, auth: Any) -> AuthResponse:
    return AuthResponse(_status_of(top, 0), *token_of(auth))


def _read_write_lac_answer(top: int, lac: pb.WriteLacResponse) -> WriteLacResponse:
    return WriteLacResponse(_status_of(top, lac.status), lac.ledgerId)


def _read_read_lac_answer(top: int, lac: pb.ReadLacResponse) -> ReadLacResponse:
    # BookKeeper's bookie answers with an I/O error although it sends a record when the ledger has one and no entry; so both are kept.
    return ReadLacResponse(
        _status_of(top, lac.status),
        lac.ledgerId,
        lac.lacBody if lac.HasField("lacBody") else None,
        lac.lastEntryBody if lac.HasField("lastEntryBody") else None,
    )


def _read_bookie_info_answer(top: int, info: pb.GetBookieInfoResponse) -> BookieInfoResponse:
    return BookieInfoResponse(
        _status_of(top, info.status),
        info.totalDiskCapacity if info.HasField("totalDiskCapacity") else None,
        info.freeDiskSpace if info.HasField("freeDiskSpace") else None,
    )


def _read_start_tls_answer(top: int, tls: pb.StartTLSResponse) -> StartTlsResponse:
    return StartTlsResponse(_status_of(top, 0))


def _read_force_answer(top: int, force: pb.ForceLedgerResponse) -> ForceResponse:
    return ForceResponse(_status_of(top, force.status), force.ledgerId)


def _read_list_answer(top: int, entries: pb.GetListOfEntriesOfLedgerResponse) -> ListEntriesResponse:
    availability = entries.availabilityOfEntriesOfLedger if entries.HasField("availabilityOfEntriesOfLedger") else None
    return ListEntriesResponse(_status_of(top, entries.status), entries.ledgerId, availability)


_RESPONSE_READERS: dict[int, tuple[str, Callable[[int, Any], Response]]] = {
    OperationType.READ: ("readResponse", _read_read_answer),
    OperationType.ADD: ("addResponse", _read_add_answer),
    OperationType.AUTH: ("authResponse", _read_auth_answer),
    OperationType.WRITE_LAC: ("writeLacResponse", _read_write_lac_answer),
    OperationType.READ_LAC: ("readLacResponse", _read_read_lac_answer),
    OperationType.BOOKIE_INFO: ("getBookieInfoResponse", _read_bookie_info_answer),
    OperationType.START_TLS: ("startTLSResponse", _read_start_tls_answer),
    OperationType.FORCE: ("forceLedgerResponse", _read_force_answer),
    OperationType.LIST_ENTRIES: ("getListOfEntriesOfLedgerResponse", _read_list_answer),
}
_WITHOUT_PART: dict[OperationType, Callable[[Status], Response]] = {
    OperationType.READ: lambda status: ReadResponse(status, NO_ID, NO_ID),
    OperationType.ADD: lambda status: AddResponse(status, NO_ID, NO_ID),
    OperationType.AUTH: lambda status: AuthResponse(status, "", b""),
    OperationType.WRITE_LAC: lambda status: WriteLacResponse(status, NO_ID),
    OperationType.READ_LAC: lambda status: ReadLacResponse(status, NO_ID),
    OperationType.BOOKIE_INFO: BookieInfoResponse,
    OperationType.START_TLS: StartTlsResponse,
    OperationType.FORCE: lambda status: ForceResponse(status, NO_ID),
    OperationType.LIST_ENTRIES: lambda status: ListEntriesResponse(status, NO_ID),
}
