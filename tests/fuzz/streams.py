"""Fuzz targets over streams of frames: reading in bulk and reading message by message must agree, on every byte.

A stream is read twice: first by the bulk scanner, with one message by the message form wherever the scanner gives up; then by messages
alone. Both must find the same messages and stop at the same offset for the same reason. The scanner must not give up at an add in
BookKeeper's encoding: a scanner that always gave up would pass otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.entry_headers import entry_header
from tests.fuzz.fields import Fields
from tests.fuzz.messages import KEY, STATUSES, any_request, any_response, entry_of
from triplicate.errors import ArgumentError, ProtocolError
from triplicate.wire import (
    ADD_HEAD_BYTES,
    FLAG_HIGH_PRIORITY,
    FLAG_RECOVERY_ADD,
    AddRequest,
    AddResponse,
    Request,
    Unserved,
    V3AddEncoder,
    add_prefix,
    decode_request,
    decode_response,
    encode_add_responses,
    encode_frame,
    encode_request,
    encode_response,
    encode_v3_add_responses,
    next_frame,
    scan_add_responses,
    scan_adds,
    scan_v3_add_responses,
    scan_v3_adds,
    v3,
)

Found = list[Any]
Read = Callable[[bytes], Any]
"""One body to the items that a walk collects."""
Scan = Callable[[bytes, int, int, int], tuple[Found, int] | None]
"""Buffer, start, end and frame limit → the messages found in bulk, and their end."""
MOST_ADDS = 12


def _walk(
    stream: bytes, end: int, limit: int, read: Read, scan: Scan | None, must_scan: Callable[[bytes, Any], bool]
) -> tuple[Found, int, str]:
    """(messages, offset at which reading stopped, reason)."""
    found: Found = []
    position = 0
    while True:
        run = scan(stream, position, end, limit) if scan is not None else None
        if run is not None:
            assert run[0]
            assert position < run[1] <= end
            found += run[0]
            position = run[1]
            continue
        try:
            frame = next_frame(stream, position, end, limit)
            if frame is None:
                return found, position, "more is needed"
            body = stream[frame[0] : frame[1]]
            message = read(body)
        except ProtocolError as error:
            return found, position, type(error).__name__
        assert scan is None or not must_scan(body, message), f"the scanner gave up at a plain one: {message}"
        found.append(message)
        position = frame[1]


def _agree(fields: Fields, stream: bytes, read: Read, scan: Scan, must_scan: Callable[[bytes, Any], bool], least_limit: int) -> None:
    end = len(stream) - min(fields.byte() % 64, len(stream))
    limit = least_limit + fields.byte() * 4
    in_bulk = _walk(stream, end, limit, read, scan, must_scan)
    by_message = _walk(stream, end, limit, read, None, must_scan)
    assert in_bulk == by_message


def _stream(fields: Fields, plain: Callable[[Fields], bytes], other: Callable[[Fields], bytes]) -> bytes:
    """Runs for the bulk form, other messages, frames of any body, and loose bytes; then a few bytes changed."""
    parts: list[bytes] = []
    size = 0
    while fields and size < 8192:
        kind = fields.byte()
        if kind < 128:
            part = plain(fields)
        elif kind < 176:
            part = other(fields)
        elif kind < 240:
            part = encode_frame(fields.blob())
        else:
            part = fields.blob()
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _damaged(fields: Fields, stream: bytes) -> bytes:
    changed = bytearray(stream)
    for _ in range(fields.byte() % 4):
        if changed:
            changed[(fields.byte() << 8 | fields.byte()) % len(changed)] ^= fields.byte()
    return bytes(changed)


def _given(data: bytes, plain: Callable[[Fields], bytes], other: Callable[[Fields], bytes]) -> tuple[Fields, bytes]:
    """The stream of an input: the input itself, or one that its fields describe."""
    fields = Fields(data)
    kind = fields.byte()
    if kind < 64:
        tail = Fields(bytes([fields.byte(), fields.byte()]))
        return tail, fields.rest()
    head = Fields(fields.take(12))
    return head, _damaged(head, _stream(fields, plain, other)) if kind < 192 else _stream(fields, plain, other)


# Version 2, adds.


def v2_adds(data: bytes) -> None:
    fields, stream = _given(data, _v2_adds, _v2_other)
    _agree(fields, stream, _read_v2_request, _scan_v2_adds, _is_plain_v2_add, 64)


def _v2_adds(fields: Fields) -> bytes:
    ledger_id, entry_id, flags, count = fields.integer(), fields.integer(), fields.byte(), fields.byte() % MOST_ADDS
    word = (FLAG_RECOVERY_ADD if flags & 1 else 0) | (FLAG_HIGH_PRIORITY if flags & 2 else 0)
    parts: list[bytes] = []
    for index in range(count):
        body = entry_of(ledger_id, _wrapped(entry_id + index), fields.integer(), fields.blob(40))
        frame = add_prefix(len(body), word, KEY) + body
        request = AddRequest(ledger_id, _wrapped(entry_id + index), KEY, body, bool(flags & 1), bool(flags & 2))
        assert frame == encode_request(request)
        parts.append(frame)
    return b"".join(parts)


def _v2_other(fields: Fields) -> bytes:
    try:
        return encode_request(any_request(fields))
    except ArgumentError:
        return b""


def _read_v2_request(body: bytes) -> Request:
    try:
        return decode_request(body)
    except Unserved as error:
        raise ProtocolError("a request that is answered, not served") from error


def _scan_v2_adds(buffer: bytes, position: int, end: int, limit: int) -> tuple[Found, int] | None:
    run = scan_adds(buffer, position, end, limit)
    if run is None:
        return None
    assert run.offsets[0] == position
    assert len(run.offsets) == len(run.entry_ids) + 1
    bodies = [buffer[start + ADD_HEAD_BYTES : stop] for start, stop in zip(run.offsets, run.offsets[1:], strict=False)]
    assert run.last_add_confirmed == max(entry_header(body).last_add_confirmed for body in bodies)
    adds = [
        AddRequest(run.ledger_id, entry_id, run.master_key, body, run.recovery, run.high_priority)
        for entry_id, body in zip(run.entry_ids, bodies, strict=True)
    ]
    return adds, run.offsets[-1]


def _is_plain_v2_add(body: bytes, message: Any) -> bool:
    return isinstance(message, AddRequest) and body[0] == 2 and message.ledger_id >= 0 and message.entry_id >= 0


# Version 2, answers to adds.


def v2_add_answers(data: bytes) -> None:
    fields, stream = _given(data, _v2_answers, _v2_other_answer)
    _agree(fields, stream, decode_response, _scan_v2_answers, _is_plain_v2_answer, 64)


def _v2_answers(fields: Fields) -> bytes:
    ledger_id, status = fields.integer(), STATUSES[fields.byte() % len(STATUSES)]
    first = fields.integer()
    entry_ids = [_wrapped(first + index) for index in range(fields.byte() % MOST_ADDS)]
    frames = encode_add_responses(ledger_id, entry_ids, status)
    assert frames == b"".join(encode_response(AddResponse(status, ledger_id, entry_id)) for entry_id in entry_ids)
    return frames


def _v2_other_answer(fields: Fields) -> bytes:
    try:
        return encode_response(any_response(fields))
    except ArgumentError:
        return b""


def _scan_v2_answers(buffer: bytes, position: int, end: int, limit: int) -> tuple[Found, int] | None:
    run = scan_add_responses(buffer, position, end)
    return None if run is None else ([AddResponse(run.status, run.ledger_id, entry_id) for entry_id in run.entry_ids], run.end)


def _is_plain_v2_answer(body: bytes, message: Any) -> bool:
    return isinstance(message, AddResponse) and body[0] == 2


# Version 3, adds.


def v3_adds(data: bytes) -> None:
    fields, stream = _given(data, _v3_adds, _v3_other)
    _agree(fields, stream, v3.decode_request, _scan_v3_adds, _is_plain_v3_add, 96)


def _v3_adds(fields: Fields) -> bytes:
    ledger_id, entry_id, txn_id = fields.integer(), fields.integer(), fields.unsigned()
    flags, count = fields.byte(), fields.byte() % MOST_ADDS
    recovery, deferred = bool(flags & 1), bool(flags & 2)
    priority = (0, 1, 100, 2**32 - 1)[flags >> 3 & 3] if flags & 4 else None
    encoder = V3AddEncoder(ledger_id, KEY, recovery=recovery, deferred_sync=deferred, priority=priority)
    parts: list[bytes] = []
    for index in range(count):
        number, transaction = _wrapped(entry_id + index), (txn_id + index) % 2**64
        body = entry_of(ledger_id, number, fields.integer(), fields.blob(40))
        frame = encoder.encode(number, transaction, body)
        assert frame == v3.encode_request(AddRequest(ledger_id, number, KEY, body, recovery, False, deferred), transaction, priority)
        parts.append(frame)
    return b"".join(parts)


def _v3_other(fields: Fields) -> bytes:
    try:
        return v3.encode_request(any_request(fields), fields.unsigned(), fields.byte() if fields.flag() else None)
    except ArgumentError:
        return b""


def _scan_v3_adds(buffer: bytes, position: int, end: int, limit: int) -> tuple[Found, int] | None:
    run = scan_v3_adds(buffer, position, end, limit)
    if run is None:
        return None
    bodies = [buffer[start:stop] for start, stop in zip(run.starts, run.stops, strict=True)]
    assert run.last_add_confirmed == max(entry_header(body).last_add_confirmed for body in bodies)
    adds = [
        AddRequest(run.ledger_id, entry_id, run.master_key, body, run.recovery, run.high_priority, run.deferred_sync)
        for entry_id, body in zip(run.entry_ids, bodies, strict=True)
    ]
    frames, v2_run = run.as_v2(buffer)
    assert _scan_v2_adds(frames, 0, len(frames), 2**31) == (
        [AddRequest(*(getattr(add, name) for name in AddRequest.__slots__[:-1])) for add in adds],
        v2_run.offsets[-1],
    )
    # A run does not keep the priority's number; the requests compare whether it is high.
    first = v3.decode_request(buffer[position + 4 : next_frame(buffer, position, end, limit)[1]])  # type: ignore[index]
    found = [
        v3.V3Request(txn_id, add, v3.OperationType.ADD, priority=first.priority) for txn_id, add in zip(run.txn_ids, adds, strict=True)
    ]
    return found, run.end


def _is_plain_v3_add(body: bytes, message: Any) -> bool:
    """Whether the add has BookKeeper's encoding, without negative numbers."""
    add = message.request
    if not isinstance(add, AddRequest) or message.refusal is not None or add.ledger_id < 0 or add.entry_id < 0 or message.txn_id >= 2**63:
        return False
    return v3.encode_request(add, message.txn_id, message.priority)[4:] == body


# Version 3, answers to adds.


def v3_add_answers(data: bytes) -> None:
    fields, stream = _given(data, _v3_answers, _v3_other_answer)
    _agree(fields, stream, v3.decode_response, _scan_v3_answers, _is_plain_v3_answer, 96)


def _v3_answers(fields: Fields) -> bytes:
    ledger_id, status = fields.integer(), STATUSES[fields.byte() % len(STATUSES)]
    first, txn_id, count = fields.integer(), fields.unsigned(), fields.byte() % MOST_ADDS
    entry_ids = [_wrapped(first + index) for index in range(count)]
    txn_ids = [(txn_id + index) % 2**64 for index in range(count)]
    frames = encode_v3_add_responses(ledger_id, entry_ids, txn_ids, status)
    answers = [AddResponse(status, ledger_id, entry_id) for entry_id in entry_ids]
    assert frames == b"".join(v3.encode_response(answer, number) for answer, number in zip(answers, txn_ids, strict=True))
    return frames


def _v3_other_answer(fields: Fields) -> bytes:
    try:
        return v3.encode_response(any_response(fields), fields.unsigned())
    except ArgumentError:
        return b""


def _scan_v3_answers(buffer: bytes, position: int, end: int, limit: int) -> tuple[Found, int] | None:
    run = scan_v3_add_responses(buffer, position, end)
    if run is None:
        return None
    ids = zip(run.txn_ids, run.entry_ids, strict=True)
    return [(txn_id, AddResponse(run.status, run.ledger_id, entry_id)) for txn_id, entry_id in ids], run.end


def _is_plain_v3_answer(body: bytes, message: Any) -> bool:
    txn_id, answer = message
    if not isinstance(answer, AddResponse) or answer.ledger_id < 0 or answer.entry_id < 0 or txn_id >= 2**63:
        return False
    return v3.encode_response(answer, txn_id)[4:] == body


def _wrapped(number: int) -> int:
    """Into 64 bits with a sign."""
    return (number + 2**63) % 2**64 - 2**63
