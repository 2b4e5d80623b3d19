from __future__ import annotations

import struct
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.errors import ProtocolError
from triplicate.wire import (
    AddRequest,
    AddResponse,
    AuthRequest,
    AuthResponse,
    BatchAnswer,
    BatchReadRequest,
    BatchReadResponse,
    ReadRequest,
    ReadResponse,
    Request,
    Response,
    Status,
    decode_answer,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    v2,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
KEY = st.binary(min_size=20, max_size=20)
PLUGIN = st.text(st.characters(codec="utf-8"), max_size=8)
# Statuses with a code of their own in version 2.
STATUS = st.sampled_from([status for status in Status if status is not Status.UNKNOWN_LEDGER_STATE])
# How packets of some kinds and versions begin.
STARTS = st.sampled_from([b"", b"\x02\x01", b"\x02\x02", b"\x02\x03", b"\x02\x07", b"\x00\x00\x00\x01", b"\x01\x02\x00\x01"])


def make_add(ledger_id: int, entry_id: int, key: bytes, rest: bytes, recovery: bool, high_priority: bool) -> AddRequest:
    body = struct.pack(">qq", ledger_id, entry_id) + rest
    return AddRequest(ledger_id, entry_id, key, body, recovery=recovery, high_priority=high_priority)


def make_read(ledger_id: int, entry_id: int, key: bytes | None, high_priority: bool) -> ReadRequest:
    return ReadRequest(ledger_id, entry_id, fence=key is not None, master_key=key, high_priority=high_priority)


def make_batch_read(ledger_id: int, entry_id: int, request_id: int, count: int, size: int, key: bytes | None) -> BatchReadRequest:
    return BatchReadRequest(ledger_id, entry_id, request_id, count, size, fence=key is not None, master_key=key)


REQUESTS: st.SearchStrategy[Request] = st.one_of(
    st.builds(make_add, INT64, INT64, KEY, st.binary(min_size=16, max_size=60), st.booleans(), st.booleans()),
    st.builds(make_read, INT64, INT64, st.none() | KEY, st.booleans()),
    st.builds(make_batch_read, INT64, INT64, INT64, INT32, INT64, st.none() | KEY),
    st.builds(AuthRequest, PLUGIN, st.binary(max_size=20)),
)
RESPONSES: st.SearchStrategy[Response] = st.one_of(
    st.builds(AddResponse, STATUS, INT64, INT64),
    st.builds(ReadResponse, st.just(Status.OK), INT64, INT64, st.binary(max_size=60)),
    st.builds(ReadResponse, STATUS.filter(bool), INT64, INT64),
    st.builds(BatchReadResponse, st.just(Status.OK), INT64, INT64, INT64, st.lists(st.binary(max_size=20), max_size=5).map(tuple)),
    st.builds(BatchReadResponse, STATUS.filter(bool), INT64, INT64, INT64),
    st.builds(AuthResponse, st.just(Status.OK), PLUGIN, st.binary(max_size=20)),
)


def body_of(frame: bytes) -> bytes:
    assert frame[:4] == struct.pack(">I", len(frame) - 4)
    return frame[4:]


@settings(deadline=None)
@given(REQUESTS)
def test_requests_round_trip(request: Request) -> None:
    assert decode_request(body_of(encode_request(request))) == request


@settings(deadline=None)
@given(RESPONSES, st.integers(0, 2))
def test_responses_round_trip_in_every_version(response: Response, version: int) -> None:
    frame = encode_response(response, version)
    assert frame[4] == version
    assert decode_response(body_of(frame)) == response
    assert in_place(body_of(frame)) == response


def in_place(body: bytes) -> Response | str:
    """The result of `decode_answer` for a body between other bytes, or the error's text."""
    try:
        found = decode_answer(b"before" + body + b"behind it", 6, 6 + len(body))
    except ProtocolError as error:
        return str(error)
    if isinstance(found, BatchAnswer):
        bodies = v2.split_sized(found.data[: found.end], found.position)
        return BatchReadResponse(found.status, found.ledger_id, found.start_entry_id, found.request_id, bodies)
    return found


def by_itself(body: bytes) -> Response | str:
    try:
        return decode_response(body)
    except ProtocolError as error:
        return str(error)


@settings(deadline=None, max_examples=examples(300))
@given(STARTS, st.binary(max_size=80))
def test_an_answer_in_a_buffer_decodes_as_it_does_alone(start: bytes, rest: bytes) -> None:
    assert in_place(start + rest) == by_itself(start + rest)


@settings(deadline=None, max_examples=examples(300))
@given(STATUS | st.just(Status.OK), st.lists(st.binary(max_size=5), max_size=6), st.integers(0, 80), st.binary(max_size=3))
def test_a_batch_in_a_buffer_ends_with_an_entry(status: Status, entries: list[bytes], cut: int, tail: bytes) -> None:
    sized = b"".join(struct.pack(">I", len(entry)) + entry for entry in entries)
    body = (v2.batch_read_head(5, 7, 42, len(sized), status) + sized)[4:]
    for changed in (body, body[: len(body) - cut], body + tail):
        assert in_place(changed) == by_itself(changed)


@settings(deadline=None, max_examples=examples(300))
@given(STARTS, st.binary(max_size=80))
def test_garbage_gives_a_message_or_a_protocol_error(start: bytes, rest: bytes) -> None:
    for decode in (decode_request, decode_response):
        with suppress(ProtocolError):
            assert decode(start + rest) is not None


@settings(deadline=None)
@given(REQUESTS, RESPONSES, st.data())
def test_packets_cut_short_give_a_message_or_a_protocol_error(request: Request, response: Response, data: st.DataObject) -> None:
    for body, decode in ((body_of(encode_request(request)), decode_request), (body_of(encode_response(response)), decode_response)):
        with suppress(ProtocolError):
            assert decode(body[: data.draw(st.integers(0, len(body)))]) is not None
