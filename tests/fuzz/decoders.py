"""Fuzz targets over single packets: a decoded packet encodes to the same meaning, and only protocol errors are raised."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from tests.fuzz.fields import Fields
from tests.fuzz.messages import STATUSES, any_request, any_response
from triplicate.errors import ArgumentError, FrameTooLarge, ProtocolError
from triplicate.wire import (
    AddRequest,
    AddResponse,
    AuthRequest,
    AuthResponse,
    BatchReadRequest,
    BatchReadResponse,
    BookieInfoResponse,
    FrameBuffer,
    ReadRequest,
    ReadResponse,
    Request,
    Response,
    Status,
    Unserved,
    next_frame,
    status_from_v2,
    status_to_v2,
    v2,
    v3,
)


def v2_request(data: bytes) -> None:
    try:
        request = v2.decode_request(data)
    except Unserved as error:
        _is_told(error)
        return
    except ProtocolError:
        return
    version, _, flags = v2.split_header(data)
    try:
        again = v2.encode_request(request)
    except ArgumentError:
        # Version 1 has the fence flag and no room for the key.
        assert version < v2.CURRENT_VERSION
        assert getattr(request, "fence", False)
        return
    assert v2.decode_request(again[4:]) == request
    if isinstance(request, AuthRequest):
        return
    # A read may have trailing bytes; unknown flags are not encoded again.
    assert data.startswith(again[8:], 4)
    assert isinstance(request, ReadRequest | BatchReadRequest) or len(again) == len(data) + 4
    assert v2.split_header(again[4:])[2] & ~flags == 0


def _is_told(refused: Unserved) -> None:
    assert refused.version > v2.CURRENT_VERSION or isinstance(refused.answer, AddResponse)
    if refused.answer is not None:
        assert v2.decode_response(v2.encode_response(refused.answer)[4:]) == refused.answer


def v2_response(data: bytes) -> None:
    try:
        response = v2.decode_response(data)
    except ProtocolError:
        return
    version = v2.split_header(data)[0]
    again = v2.encode_response(response, version)
    decoded = v2.decode_response(again[4:])
    if isinstance(response, AuthResponse):
        assert decoded == response
        return
    # An unknown state of the ledger is not sent over version 2: its own client would close the connection.
    sent = Status.IO_ERROR if response.status is Status.UNKNOWN_LEDGER_STATE else response.status
    assert decoded == replace(response, status=sent)
    assert again[12:] == data[8:]


def v3_request(data: bytes) -> None:
    try:
        found = v3.decode_request(data)
    except ProtocolError:
        return
    if found.request is None:
        assert found.refusal is Status.BAD_REQUEST
    for status in STATUSES[1:]:
        frame = v3.encode_refusal(found, status)
        try:
            txn_id, response = v3.decode_response(frame[4:])
        except ProtocolError:
            assert found.operation not in tuple(v3.OperationType)
            break
        assert (txn_id, response.status) == (found.txn_id, status)
    v3.encode_unauthenticated(found)
    v3.encode_unknown_operation(found)
    if found.request is None or found.refusal is not None:
        return
    try:
        again = v3.encode_request(found.request, found.txn_id, found.priority)
    except ArgumentError:
        # A flag for long polls only; the bookie ignores it, our client does not send it.
        assert isinstance(found.request, ReadRequest)
        assert found.request.piggyback
        return
    assert v3.decode_request(again[4:]) == found


def v3_response(data: bytes) -> None:
    try:
        found = v3.decode_response(data)
    except ProtocolError:
        return
    txn_id, response = found
    try:
        again = v3.encode_response(response, txn_id)
    except ArgumentError:
        assert isinstance(response, BookieInfoResponse)
        assert response.status is Status.OK
        return
    if isinstance(response, BookieInfoResponse) and None in (response.total_bytes, response.free_bytes):
        found = txn_id, BookieInfoResponse(response.status)
    assert v3.decode_response(again[4:]) == found


def v3_damaged(data: bytes) -> None:
    """Messages made of fields with a few bytes changed: most are still nested correctly, which random bytes seldom are."""
    fields = Fields(data)
    kind, changes = fields.byte(), [(fields.byte() << 8 | fields.byte(), fields.byte()) for _ in range(fields.byte() % 4)]
    appended = fields.blob(16)
    try:
        if kind & 1:
            frame = v3.encode_request(any_request(fields), fields.unsigned(), fields.byte() if kind & 2 else None)
        else:
            frame = v3.encode_response(any_response(fields), fields.unsigned())
    except ArgumentError:
        return
    body = bytearray(frame[4:] + appended)
    for place, change in changes:
        body[place % len(body)] ^= change
    (v3_request if kind & 1 else v3_response)(bytes(body))


def written(data: bytes) -> None:
    """Messages made of fields round-trip through both versions, or are refused by name."""
    fields = Fields(data)
    kind = fields.byte()
    if kind & 1:
        _request_comes_back(any_request(fields), fields, kind)
    else:
        _response_comes_back(any_response(fields), fields)


def _request_comes_back(request: Request, fields: Fields, kind: int) -> None:
    with suppress(ArgumentError):
        assert v2.decode_request(v2.encode_request(request)[4:]) == request
    priority = fields.byte() if kind & 2 else None
    try:
        frame = v3.encode_request(request, fields.unsigned(), priority)
    except ArgumentError:
        return
    found = v3.decode_request(frame[4:])
    expected = request
    if isinstance(request, AddRequest | ReadRequest) and priority is not None:
        expected = replace(request, high_priority=priority > 0)
    assert found.request == expected
    assert found.refusal is None


def _response_comes_back(response: Response, fields: Fields) -> None:
    version = fields.byte() % 3
    with suppress(ArgumentError):
        frame = v2.encode_response(response, version)
        assert v2.decode_response(frame[4:]) == _answer_over_v2(response)
    txn_id = fields.unsigned()
    try:
        frame = v3.encode_response(response, txn_id)
    except ArgumentError:
        return
    if isinstance(response, ReadResponse) and response.status is not Status.OK:
        response = replace(response, body=None)
    if isinstance(response, BookieInfoResponse) and None in (response.total_bytes, response.free_bytes):
        response = BookieInfoResponse(response.status)
    assert v3.decode_response(frame[4:]) == (txn_id, response)


def _answer_over_v2(response: Response) -> Response:
    sent = status_from_v2(status_to_v2(response.status))
    if isinstance(response, AuthResponse):
        return replace(response, status=Status.OK)
    if isinstance(response, ReadResponse):
        return ReadResponse(sent, response.ledger_id, response.entry_id, response.body if sent is Status.OK else None)
    if isinstance(response, BatchReadResponse):
        return replace(response, status=sent, bodies=response.bodies if sent is Status.OK else ())
    return replace(response, status=sent)


def frames(data: bytes) -> None:
    """Chunks of any size give the same bodies as one pass over the whole, within the limit of memory."""
    fields = Fields(data)
    limit, seed = 16 + fields.byte(), fields.byte()
    stream = fields.rest()
    bodies: list[bytes] = []
    position, too_large = 0, False
    try:
        while (frame := next_frame(stream, position, len(stream), limit)) is not None:
            bodies.append(stream[frame[0] : frame[1]])
            position = frame[1]
    except FrameTooLarge:
        too_large = True
    buffer = FrameBuffer(limit)
    found: list[bytes] = []
    start = 0
    try:
        while start < len(stream):
            seed = (seed * 5 + 3) % 256
            size = 1 + seed % 61
            found += buffer.bodies(stream[start : start + size])
            start += size
            assert buffer.held_bytes < limit
    except FrameTooLarge:
        assert too_large
        assert found == bodies[: len(found)]
        return
    assert not too_large
    assert found == bodies
    assert buffer.held_bytes == len(stream) - position
