"""Encoding and decoding of requests of protocol version 3."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from triplicate.errors import ArgumentError
from triplicate.ledger import HEADER_BYTES, MASTER_KEY_BYTES
from triplicate.wire import bookkeeper_protocol_pb2 as pb
from triplicate.wire.frames import encode_frame
from triplicate.wire.messages import (
    LAST_ENTRY,
    AddRequest,
    AuthRequest,
    BookieInfoRequest,
    ForceRequest,
    ListEntriesRequest,
    ReadLacRequest,
    ReadRequest,
    Request,
    StartTlsRequest,
    Status,
    WriteLacRequest,
)
from triplicate.wire.v3.envelope import VERSION, OperationType, V3Request, parse, set_header, token_of

HIGH_PRIORITY = 100
"""The priority that BookKeeper's client sends; a bookie only checks whether it is above 0."""

DEFERRED_SYNC = 1
"""The bit of an add's write flags that asks for an answer before the sync."""

# Requests, written.


def encode_request(request: Request, txn_id: int, priority: int | None = None) -> bytes:
    """The frame of a request.

    Args:
        txn_id: returned in the answer; unsigned 64-bit, unique among the pending requests of the connection.
        priority: above 0 is high; None sends BookKeeper's 100 where the request asks for high priority, otherwise nothing.

    Raises:
        ArgumentError: version 3 cannot carry the request or one of its fields, or a fencing read has no master key.
    """
    if priority is None and getattr(request, "high_priority", False):
        priority = HIGH_PRIORITY
    writer = _REQUEST_WRITERS.get(type(request))
    if writer is None:
        raise ArgumentError(f"protocol version 3 has no {type(request).__name__}; send it over version 2")
    operation, write = writer
    try:
        message = pb.Request()
        set_header(message.header, operation, txn_id, priority)
        write(message, request)
    except ArgumentError:
        raise
    except ValueError as error:
        raise ArgumentError(f"a {type(request).__name__} cannot be written: {error}") from error
    return encode_frame(message.SerializeToString(deterministic=True))


_IDS = Struct(">qq")


def _is_entry(request: AddRequest) -> bool:
    return len(request.body) >= HEADER_BYTES and _IDS.unpack_from(request.body) == (request.ledger_id, request.entry_id)


def _is_lac_record(request: WriteLacRequest) -> bool:
    """Whether the record is of the request's ledger. Its own last-add-confirmed may be newer than the request's: it is signed later."""
    return len(request.body) >= _IDS.size and _IDS.unpack_from(request.body)[0] == request.ledger_id


def _write_add(message: pb.Request, request: AddRequest) -> None:
    if not _is_entry(request):
        raise ArgumentError(f"body is not entry {request.entry_id} of ledger {request.ledger_id}: its first 16 bytes must be these ids")
    add = message.addRequest
    add.ledgerId = request.ledger_id
    add.entryId = request.entry_id
    add.masterKey = _key_of(request.master_key, "an add")
    add.body = request.body
    if request.deferred_sync:
        add.writeFlags = DEFERRED_SYNC
    if request.recovery:
        add.flag = pb.AddRequest.RECOVERY_ADD


def _write_read(message: pb.Request, request: ReadRequest) -> None:
    read = message.readRequest
    read.ledgerId = request.ledger_id
    read.entryId = request.entry_id
    if request.fence:
        if request.previous_lac is not None or request.timeout_ms is not None or request.piggyback:
            raise ArgumentError("previous_lac, timeout_ms and piggyback: a read that fences cannot be a long poll")
        read.masterKey = _key_of(request.master_key, "a fencing read")
        read.flag = pb.ReadRequest.FENCE_LEDGER
        return
    if request.previous_lac is not None:
        read.previousLAC = request.previous_lac
    if request.timeout_ms is not None:
        read.timeOut = request.timeout_ms
    if request.piggyback:
        if request.entry_id != LAST_ENTRY:
            raise ArgumentError(f"piggyback: only a read of the last entry can carry it, not one of entry {request.entry_id}")
        read.flag = pb.ReadRequest.ENTRY_PIGGYBACK


def _key_of(key: bytes | None, subject: str) -> bytes:
    if key is None or len(key) != MASTER_KEY_BYTES:
        raise ArgumentError(f"master_key: {subject} needs exactly {MASTER_KEY_BYTES} bytes")
    return key


def _write_auth(message: pb.Request, request: AuthRequest) -> None:
    message.authRequest.authPluginName = request.plugin
    message.authRequest.payload = request.payload


def _write_write_lac(message: pb.Request, request: WriteLacRequest) -> None:
    if not _is_lac_record(request):
        raise ArgumentError(f"body is not a last-add-confirmed record of ledger {request.ledger_id}: it must begin with this id")
    lac = message.writeLacRequest
    lac.ledgerId = request.ledger_id
    lac.lac = request.lac
    lac.masterKey = _key_of(request.master_key, "a write of the last-add-confirmed")
    lac.body = request.body


def _write_read_lac(message: pb.Request, request: ReadLacRequest) -> None:
    message.readLacRequest.ledgerId = request.ledger_id


def _write_bookie_info(message: pb.Request, request: BookieInfoRequest) -> None:
    message.getBookieInfoRequest.requested = request.requested


def _write_start_tls(message: pb.Request, request: StartTlsRequest) -> None:
    message.startTLSRequest.SetInParent()


def _write_force(message: pb.Request, request: ForceRequest) -> None:
    message.forceLedgerRequest.ledgerId = request.ledger_id


def _write_list(message: pb.Request, request: ListEntriesRequest) -> None:
    message.getListOfEntriesOfLedgerRequest.ledgerId = request.ledger_id


_REQUEST_WRITERS: dict[type, tuple[OperationType, Callable[[pb.Request, Any], None]]] = {
    ReadRequest: (OperationType.READ, _write_read),
    AddRequest: (OperationType.ADD, _write_add),
    AuthRequest: (OperationType.AUTH, _write_auth),
    WriteLacRequest: (OperationType.WRITE_LAC, _write_write_lac),
    ReadLacRequest: (OperationType.READ_LAC, _write_read_lac),
    BookieInfoRequest: (OperationType.BOOKIE_INFO, _write_bookie_info),
    StartTlsRequest: (OperationType.START_TLS, _write_start_tls),
    ForceRequest: (OperationType.FORCE, _write_force),
    ListEntriesRequest: (OperationType.LIST_ENTRIES, _write_list),
}


# Requests, read.


def decode_request(body: bytes) -> V3Request:
    """The request in a body.

    Unknown flags count as absent, as in BookKeeper. Fencing takes precedence: the long-poll fields of a fencing read are ignored. A master
    key counts only in a fencing read.

    Raises:
        ProtocolError: not a request; close the connection.
    """
    message = parse(pb.Request(), body, "a request")
    header = message.header
    priority = header.priority if header.HasField("priority") else None
    reader = _REQUEST_READERS.get(header.operation)
    found: Request | None = None
    if reader is not None and message.HasField(reader[0]):
        found = reader[1](getattr(message, reader[0]), bool(priority))
    return V3Request(header.txnId, found, header.operation, header.version, priority, _refusal(found, header.version))


def _refusal(request: Request | None, version: int) -> Status | None:
    """The reason not to serve a request, in the order of a bookie's checks; None if there is none."""
    if request is None:
        return Status.BAD_REQUEST
    if version != VERSION:
        return Status.BAD_VERSION
    if isinstance(request, AddRequest | WriteLacRequest):
        if len(request.master_key) != MASTER_KEY_BYTES:
            return Status.UNAUTHORIZED
        whole = _is_entry(request) if isinstance(request, AddRequest) else _is_lac_record(request)
        return None if whole else Status.BAD_REQUEST
    if isinstance(request, ReadRequest):
        if request.fence and len(request.master_key or b"") != MASTER_KEY_BYTES:
            return Status.UNAUTHORIZED
        if request.piggyback and request.previous_lac is not None and request.entry_id != LAST_ENTRY:
            return Status.BAD_REQUEST
    return None


def _read_add(add: pb.AddRequest, high_priority: bool) -> AddRequest:
    recovery = add.flag == pb.AddRequest.RECOVERY_ADD
    return AddRequest(add.ledgerId, add.entryId, add.masterKey, add.body, recovery, high_priority, bool(add.writeFlags & DEFERRED_SYNC))


def _read_read(read: pb.ReadRequest, high_priority: bool) -> ReadRequest:
    if read.flag == pb.ReadRequest.FENCE_LEDGER:
        key = read.masterKey if read.HasField("masterKey") else None
        return ReadRequest(read.ledgerId, read.entryId, fence=True, master_key=key, high_priority=high_priority)
    return ReadRequest(
        read.ledgerId,
        read.entryId,
        high_priority=high_priority,
        previous_lac=read.previousLAC if read.HasField("previousLAC") else None,
        timeout_ms=read.timeOut if read.HasField("timeOut") else None,
        piggyback=read.flag == pb.ReadRequest.ENTRY_PIGGYBACK,
    )


def _read_auth(auth: Any, high_priority: bool) -> AuthRequest:
    return AuthRequest(*token_of(auth))


def _read_write_lac(lac: pb.WriteLacRequest, high_priority: bool) -> WriteLacRequest:
    return WriteLacRequest(lac.ledgerId, lac.lac, lac.masterKey, lac.body)


def _read_read_lac(lac: pb.ReadLacRequest, high_priority: bool) -> ReadLacRequest:
    return ReadLacRequest(lac.ledgerId)


def _read_bookie_info(info: pb.GetBookieInfoRequest, high_priority: bool) -> BookieInfoRequest:
    return BookieInfoRequest(info.requested)


def _read_start_tls(tls: pb.StartTLSRequest, high_priority: bool) -> StartTlsRequest:
    return StartTlsRequest()


def _read_force(force: pb.ForceLedgerRequest, high_priority: bool) -> ForceRequest:
    return ForceRequest(force.ledgerId)


def _read_list(entries: pb.GetListOfEntriesOfLedgerRequest, high_priority: bool) -> ListEntriesRequest:
    return ListEntriesRequest(entries.ledgerId)


_REQUEST_READERS: dict[int, tuple[str, Callable[[Any, bool], Request]]] = {
    OperationType.READ: ("readRequest", _read_read),
    OperationType.ADD: ("addRequest", _read_add),
    OperationType.AUTH: ("authRequest", _read_auth),
    OperationType.WRITE_LAC: ("writeLacRequest", _read_write_lac),
    OperationType.READ_LAC: ("readLacRequest", _read_read_lac),
    OperationType.BOOKIE_INFO: ("getBookieInfoRequest", _read_bookie_info),
    OperationType.START_TLS: ("startTLSRequest", _read_start_tls),
    OperationType.FORCE: ("forceLedgerRequest", _read_force),
    OperationType.LIST_ENTRIES: ("getListOfEntriesOfLedgerRequest", _read_list),
}
