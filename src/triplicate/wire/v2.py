"""Packets of protocol version 2 (and of its forerunners 0 and 1) to messages and back.

`encode_…` gives a whole frame with its length, `decode_…` takes a body without it. A body begins with a header word: version in
the top 8 bits, operation in the next 8, flags in the low 16. Source: BookKeeper `BookieProtoEncoding`, `BookieProtocol`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError

from google.protobuf.message import DecodeError

from triplicate.errors import ArgumentError, ProtocolError
from triplicate.ledger import HEADER_BYTES, MASTER_KEY_BYTES
from triplicate.wire.auth_message_pb2 import AuthMessage
from triplicate.wire.frames import encode_frame
from triplicate.wire.messages import (
    AddRequest,
    AddResponse,
    AuthRequest,
    AuthResponse,
    BatchReadRequest,
    BatchReadResponse,
    ReadRequest,
    ReadResponse,
    Request,
    Response,
    Status,
)
from triplicate.wire.status import status_from_v2, status_to_v2

CURRENT_VERSION = 2

ADD = 1
READ = 2
AUTH = 3
BATCH_READ = 7

FLAG_FENCE = 0x0001
FLAG_RECOVERY_ADD = 0x0002
FLAG_HIGH_PRIORITY = 0x0004

_WORD = Struct(">I")
_IDS = Struct(">qq")
_ADD_IDS_OFFSET = _WORD.size + MASTER_KEY_BYTES
ADD_IDS = Struct(f">{_ADD_IDS_OFFSET}xqq")
"""Ledger and entry of an add, unpacked at the beginning of its body."""
_READ = Struct(">Iqq")
_FRAMED_READ = Struct(">IIqq")
_BATCH_READ = Struct(">Iqqqiq")
_ANSWER = Struct(">IIqq")
_BATCH_ANSWER = Struct(">IIqqq")
_FRAMED_BATCH_ANSWER = Struct(">IIIqqq")


class Unserved(ProtocolError):
    """A request that cannot be served. `answer` is the response to send; None closes the connection.

    Args:
        version: the request's, with which it is answered.
    """

    def __init__(self, why: str, version: int, answer: Response | None) -> None:
        super().__init__(why)
        self.version = version
        self.answer = answer


def header_word(operation: int, flags: int = 0, version: int = CURRENT_VERSION) -> int:
    """The first four bytes of a body as a number. Version 0 has no room for flags."""
    return operation if version == 0 else version << 24 | operation << 16 | flags


_READ_WORD = header_word(READ)
_BATCH_READ_WORD = header_word(BATCH_READ)


def split_header(body: bytes) -> tuple[int, int, int]:
    """(version, operation, flags) of a body.

    Raises:
        ProtocolError: fewer than four bytes.
    """
    if len(body) < _WORD.size:
        raise ProtocolError(f"a packet of {len(body)} bytes is too short for its header")
    word: int = _WORD.unpack_from(body)[0]
    version = word >> 24
    if version == 0:
        return 0, word, 0
    return version, word >> 16 & 0xFF, word & 0xFFFF


# Requests.


def encode_request(request: Request) -> bytes:
    """The frame of a request.

    Raises:
        ArgumentError: version 2 cannot carry the request or one of its fields, or a fencing read has no master key.
    """
    if isinstance(request, ReadRequest):
        return _encode_read(request)
    if isinstance(request, AddRequest):
        return _encode_add(request)
    if isinstance(request, BatchReadRequest):
        flags = FLAG_FENCE if request.fence else 0
        packed = _BATCH_READ.pack(
            header_word(BATCH_READ, flags),
            request.ledger_id,
            request.start_entry_id,
            request.request_id,
            request.max_count,
            request.max_bytes,
        )
        return encode_frame(packed + _fencing_key(request))
    if isinstance(request, AuthRequest):
        return _encode_auth(request.plugin, request.payload, CURRENT_VERSION)
    raise ArgumentError(f"protocol version 2 has no {type(request).__name__}; send it over version 3")


def _encode_add(request: AddRequest) -> bytes:
    if request.deferred_sync:
        raise ArgumentError("deferred_sync: protocol version 2 cannot carry it; send the add over version 3")
    if len(request.master_key) != MASTER_KEY_BYTES:
        raise ArgumentError(f"master_key has {len(request.master_key)} bytes; an add needs exactly {MASTER_KEY_BYTES}")
    if len(request.body) < HEADER_BYTES or _IDS.unpack_from(request.body) != (request.ledger_id, request.entry_id):
        raise ArgumentError(f"body is not entry {request.entry_id} of ledger {request.ledger_id}: its first 16 bytes must be these ids")
    flags = (FLAG_RECOVERY_ADD if request.recovery else 0) | (FLAG_HIGH_PRIORITY if request.high_priority else 0)
    return encode_frame(b"".join((_WORD.pack(header_word(ADD, flags)), request.master_key, request.body)))


def _encode_read(request: ReadRequest) -> bytes:
    if request.previous_lac is not None or request.timeout_ms is not None or request.piggyback:
        raise ArgumentError("previous_lac, timeout_ms and piggyback: protocol version 2 has no long poll; send the read over version 3")
    if not (request.fence or request.high_priority):
        return _FRAMED_READ.pack(_READ.size, _READ_WORD, request.ledger_id, request.entry_id)
    flags = (FLAG_FENCE if request.fence else 0) | (FLAG_HIGH_PRIORITY if request.high_priority else 0)
    return encode_frame(_READ.pack(header_word(READ, flags), request.ledger_id, request.entry_id) + _fencing_key(request))


def _fencing_key(request: ReadRequest | BatchReadRequest) -> bytes:
    """The bookie reads 20 more bytes exactly when the fence flag is set, so the key is written with the flag and only with it."""
    if not request.fence:
        return b""
    if request.master_key is None or len(request.master_key) != MASTER_KEY_BYTES:
        raise ArgumentError(f"master_key: a fencing read needs exactly {MASTER_KEY_BYTES} bytes")
    return request.master_key


def decode_request(body: bytes) -> Request:
    """The request in a packet of version 0, 1 or 2. The answer must carry the packet's version (`split_header`).

    Raises:
        Unserved: a later version, or an add too short for an entry; send its answer and continue.
        ProtocolError: not a request; close the connection.
    """
    version, operation, flags = split_header(body)
    if version > CURRENT_VERSION:
        why = f"a request of protocol version {version}; versions 0 to {CURRENT_VERSION} are understood here"
        raise Unserved(why, version, _refusal(body, operation))
    decoder = _REQUEST_DECODERS.get(operation)
    if decoder is None:
        raise ProtocolError(f"unknown operation {operation} in a request of protocol version {version}")
    return decoder(body, version, flags)


def _refusal(body: bytes, operation: int) -> Response | None:
    if operation == ADD and len(body) >= _ADD_IDS_OFFSET + _IDS.size:
        return AddResponse(Status.BAD_VERSION, *_IDS.unpack_from(body, _ADD_IDS_OFFSET))
    if operation == READ and len(body) >= _READ.size:
        return ReadResponse(Status.BAD_VERSION, *_IDS.unpack_from(body, _WORD.size))
    if operation == BATCH_READ and len(body) >= _BATCH_READ.size:
        _, ledger_id, start_entry_id, request_id, _, _ = _BATCH_READ.unpack_from(body)
        return BatchReadResponse(Status.BAD_VERSION, ledger_id, start_entry_id, request_id)
    return None


def _decode_add(body: bytes, version: int, flags: int) -> AddRequest:
    _need(body, _ADD_IDS_OFFSET + _IDS.size, "an add")
    ledger_id, entry_id = _IDS.unpack_from(body, _ADD_IDS_OFFSET)
    if len(body) < _ADD_IDS_OFFSET + HEADER_BYTES:
        why = f"an add to ledger {ledger_id} of {len(body) - _ADD_IDS_OFFSET} bytes, which are too few for an entry"
        raise Unserved(why, version, AddResponse(Status.BAD_REQUEST, ledger_id, entry_id))
    return AddRequest(
        ledger_id,
        entry_id,
        body[_WORD.size : _ADD_IDS_OFFSET],
        body[_ADD_IDS_OFFSET:],
        recovery=bool(flags & FLAG_RECOVERY_ADD),
        high_priority=bool(flags & FLAG_HIGH_PRIORITY),
    )


def _decode_read(body: bytes, version: int, flags: int) -> ReadRequest:
    _need(body, _READ.size, "a read")
    _, ledger_id, entry_id = _READ.unpack_from(body)
    fence = bool(flags & FLAG_FENCE)
    key = _key_at(body, _READ.size, version) if fence else None
    return ReadRequest(ledger_id, entry_id, fence=fence, master_key=key, high_priority=bool(flags & FLAG_HIGH_PRIORITY))


def _decode_batch_read(body: bytes, version: int, flags: int) -> BatchReadRequest:
    _need(body, _BATCH_READ.size, "a batch read")
    _, ledger_id, start_entry_id, request_id, max_count, max_bytes = _BATCH_READ.unpack_from(body)
    fence = bool(flags & FLAG_FENCE)
    key = _key_at(body, _BATCH_READ.size, version) if fence else None
    return BatchReadRequest(ledger_id, start_entry_id, request_id, max_count, max_bytes, fence=fence, master_key=key)


def _key_at(body: bytes, offset: int, version: int) -> bytes | None:
    """The master key of a fencing read; version 1 has the flag but no room for the key."""
    if version < CURRENT_VERSION:
        return None
    _need(body, offset + MASTER_KEY_BYTES, "a fencing read")
    return body[offset : offset + MASTER_KEY_BYTES]


def _decode_auth_request(body: bytes, version: int, flags: int) -> AuthRequest:
    return AuthRequest(*_decode_auth(body))


_REQUEST_DECODERS: dict[int, Callable[[bytes, int, int], Request]] = {
    ADD: _decode_add,
    READ: _decode_read,
    BATCH_READ: _decode_batch_read,
    AUTH: _decode_auth_request,
}


# Responses.


def encode_response(response: Response, version: int = CURRENT_VERSION) -> bytes:
    """The frame of a response.

    Args:
        version: that of the request.

    Raises:
        ArgumentError: version 2 has no such response.
    """
    if isinstance(response, ReadResponse):
        answer = _ANSWER.pack(header_word(READ, version=version), status_to_v2(response.status), response.ledger_id, response.entry_id)
        return encode_frame(answer + _read_body(response))
    if isinstance(response, AddResponse):
        return encode_frame(
            _ANSWER.pack(header_word(ADD, version=version), status_to_v2(response.status), response.ledger_id, response.entry_id)
        )
    if isinstance(response, BatchReadResponse):
        if response.status is not Status.OK:
            sized: list[bytes] = []
        else:
            sized = [*response.packed, *(part for body in response.bodies for part in (_WORD.pack(len(body)), body))]
        size = sum(map(len, sized))
        head = batch_read_head(response.ledger_id, response.start_entry_id, response.request_id, size, response.status, version)
        return b"".join((head, *sized))
    if isinstance(response, AuthResponse):
        return _encode_auth(response.plugin, response.payload, version)
    raise ArgumentError(f"protocol version 2 has no {type(response).__name__}; answer over version 3")


def _read_body(response: ReadResponse) -> bytes:
    if response.status is not Status.OK:
        return b""
    if response.body is None:
        raise ArgumentError(f"body: a read of ledger {response.ledger_id} that succeeded must carry its entry")
    return response.body


def batch_read_head(
    ledger_id: int, start_entry_id: int, request_id: int, body_bytes: int, status: Status = Status.OK, version: int = CURRENT_VERSION
) -> bytes:
    """The bytes before the entries (each ``u32 size, entry``, `body_bytes` together) in the answer to a batch read."""
    word = header_word(BATCH_READ, version=version)
    return _FRAMED_BATCH_ANSWER.pack(_BATCH_ANSWER.size + body_bytes, word, status_to_v2(status), ledger_id, start_entry_id, request_id)


def decode_response(body: bytes) -> Response:
    """The response in a packet of version 0, 1 or 2.

    Raises:
        ProtocolError: not a response; close the connection.
    """
    version, operation, _ = split_header(body)
    if version > CURRENT_VERSION:
        raise ProtocolError(f"a response of protocol version {version}; versions 0 to {CURRENT_VERSION} are understood here")
    if operation == READ:
        _need(body, _ANSWER.size, "a read's answer")
        _, code, ledger_id, entry_id = _ANSWER.unpack_from(body)
        status = status_from_v2(code)
        if status is Status.OK:
            return ReadResponse(status, ledger_id, entry_id, body[_ANSWER.size :])
        _need_exactly(body, _ANSWER.size, "a failed read's answer")
        return ReadResponse(status, ledger_id, entry_id)
    if operation == ADD:
        _need_exactly(body, _ANSWER.size, "an add's answer")
        _, code, ledger_id, entry_id = _ANSWER.unpack_from(body)
        return AddResponse(status_from_v2(code), ledger_id, entry_id)
    if operation == BATCH_READ:
        return _decode_batch_answer(body)
    if operation == AUTH:
        return AuthResponse(Status.OK, *_decode_auth(body))
    raise ProtocolError(f"unknown operation {operation} in a response of protocol version {version}")


def _decode_batch_answer(body: bytes) -> BatchReadResponse:
    answer = _batch_answer_at(body, 0, len(body))
    bodies = split_sized(body, answer.position)
    return BatchReadResponse(answer.status, answer.ledger_id, answer.start_entry_id, answer.request_id, bodies)


@dataclass(slots=True)
class BatchAnswer:
    """A `BatchReadResponse` whose entries stay in the received buffer: `data` from `position` to `end`, each after its size as u32,
    whole entries only.
    """

    status: Status
    ledger_id: int
    start_entry_id: int
    request_id: int
    data: bytes
    position: int
    end: int


def decode_answer(buffer: bytes, position: int, end: int) -> Response | BatchAnswer:
    """`decode_response` of a body inside a buffer; the entries of a batch are not copied out of it. Raises as `decode_response`."""
    if end - position >= _ANSWER.size:
        word, code, ledger_id, entry_id = _ANSWER.unpack_from(buffer, position)
        if word == _READ_WORD and not code:
            return ReadResponse(Status.OK, ledger_id, entry_id, buffer[position + _ANSWER.size : end])
        if word == _BATCH_READ_WORD:
            return _batch_answer_at(buffer, position, end)
    response = decode_response(buffer[position:end])
    if isinstance(response, BatchReadResponse):
        # An earlier version, or flags that have no meaning here.
        return _batch_answer_at(buffer, position, end)
    return response


def _batch_answer_at(data: bytes, position: int, end: int) -> BatchAnswer:
    start = position + _BATCH_ANSWER.size
    if start > end:
        raise _cut_short("a batch read's answer", end - position, _BATCH_ANSWER.size)
    _, code, ledger_id, start_entry_id, request_id = _BATCH_ANSWER.unpack_from(data, position)
    status = status_from_v2(code)
    if not _ends_with_an_entry(data, start, end):
        raise ProtocolError("the entries of a batch read's answer end in the middle of one")
    if start < end and status is not Status.OK:
        count = len(split_sized(data[start:end]))
        raise ProtocolError(f"a failed batch read's answer of ledger {ledger_id} carries {count} entries")
    return BatchAnswer(status, ledger_id, start_entry_id, request_id, data, start, end)


def _ends_with_an_entry(data: bytes, position: int, end: int) -> bool:
    """Whether a run of ``u32 size, entry`` ends at `end`."""
    try:
        if position < end:
            step = _WORD.size + _WORD.unpack_from(data, position)[0]
            count, remainder = divmod(end - position, step)
            # Usually all entries have one size, so each byte of the size field is the same in all of them.
            if not remainder and all(data[at:end:step] == data[at : at + 1] * count for at in range(position, position + _WORD.size)):
                return True
        while position < end:
            position += _WORD.size + _WORD.unpack_from(data, position)[0]
    except StructError:
        return False
    return position == end


def split_sized(data: bytes, position: int = 0) -> tuple[bytes, ...]:
    """The entries in a run of ``u32 size, entry`` that ends with `data`.

    Raises:
        ProtocolError: a size exceeds the remaining bytes.
    """
    end = len(data)
    entries: list[bytes] = []
    while position < end:
        start = position + _WORD.size
        position = start + _WORD.unpack_from(data, position)[0] if start <= end else end + 1
        if position > end:
            raise ProtocolError("the entries of a batch read's answer end in the middle of one")
        entries.append(data[start:position])
    return tuple(entries)


# Authentication: a protobuf message after the header word, without a length of its own.


def _encode_auth(plugin: str, payload: bytes, version: int) -> bytes:
    message = AuthMessage(authPluginName=plugin, payload=payload)
    return encode_frame(_WORD.pack(header_word(AUTH, version=version)) + message.SerializeToString(deterministic=True))


def _decode_auth(body: bytes) -> tuple[str, bytes]:
    message = AuthMessage()
    try:
        message.ParseFromString(body[_WORD.size :])
    except DecodeError as error:
        raise ProtocolError(f"an authentication packet is damaged: {error}") from error
    if not message.IsInitialized():
        raise ProtocolError("an authentication packet lacks its plugin's name or its payload")
    plugin = message.authPluginName
    if not isinstance(plugin, str):
        # The protobuf library returns bytes for a version-2 string that is not UTF-8.
        raise ProtocolError(f"an authentication packet names the plugin {plugin!r}, which is not UTF-8")
    return plugin, message.payload


def _need(body: bytes, size: int, subject: str) -> None:
    if len(body) < size:
        raise _cut_short(subject, len(body), size)


def _cut_short(subject: str, length: int, size: int) -> ProtocolError:
    return ProtocolError(f"{subject} of {length} bytes is cut short; it needs at least {size}")


def _need_exactly(body: bytes, size: int, subject: str) -> None:
    if len(body) != size:
        raise ProtocolError(f"{subject} has {len(body)} bytes instead of {size}")
