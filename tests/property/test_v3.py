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
    V3AddEncoder,
    WriteLacRequest,
    WriteLacResponse,
    encode_v3_add_responses,
    next_frame,
    scan_adds,
    scan_v3_add_responses,
    scan_v3_adds,
    v3,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
# Numbers of every width, since varints differ by it.
ID = st.integers(0, 63).flatmap(lambda bits: st.integers(0, 2**bits - 1))
TXN = st.integers(0, 64).flatmap(lambda bits: st.integers(0, 2**bits - 1))
KEY = st.binary(min_size=20, max_size=20)
PLUGIN = st.text(st.characters(codec="utf-8"), max_size=8)
STATUS = st.sampled_from(list(Status))
FAILED = st.sampled_from([status for status in Status if status is not Status.OK])
PRIORITY = st.none() | st.integers(0, 2**32 - 1)
SMALL = st.binary(max_size=40)


def make_entry(ledger_id: int, entry_id: int, confirmed: int = -1, rest: bytes = b"") -> bytes:
    return struct.pack(">qqqq", ledger_id, entry_id, confirmed, 0) + rest


def make_add(ledger_id: int, entry_id: int, key: bytes, rest: bytes, recovery: bool, high_priority: bool, deferred: bool) -> AddRequest:
    return AddRequest(ledger_id, entry_id, key, make_entry(ledger_id, entry_id, 0, rest), recovery, high_priority, deferred)


def make_long_poll(ledger_id: int, previous: int | None, timeout_ms: int | None, piggyback: bool) -> ReadRequest:
    return ReadRequest(ledger_id, -1, previous_lac=previous, timeout_ms=timeout_ms, piggyback=piggyback)


def make_lac(ledger_id: int, lac: int, key: bytes, rest: bytes) -> WriteLacRequest:
    return WriteLacRequest(ledger_id, lac, key, struct.pack(">qq", ledger_id, lac) + rest)


REQUESTS: st.SearchStrategy[Request] = st.one_of(
    st.builds(make_add, INT64 | ID, INT64 | ID, KEY, SMALL, st.booleans(), st.booleans(), st.booleans()),
    st.builds(ReadRequest, INT64, INT64, high_priority=st.booleans()),
    st.builds(ReadRequest, INT64, INT64, st.just(True), KEY, st.booleans()),
    st.builds(make_long_poll, INT64, st.none() | INT64, st.none() | INT64, st.booleans()),
    st.builds(AuthRequest, PLUGIN, SMALL),
    st.builds(make_lac, INT64, INT64, KEY, SMALL),
    st.builds(ReadLacRequest, INT64),
    st.builds(ForceRequest, INT64),
    st.builds(BookieInfoRequest, INT64),
    st.builds(ListEntriesRequest, INT64),
    st.builds(StartTlsRequest),
)
OPTIONAL = st.none() | SMALL
RESPONSES: st.SearchStrategy[Response] = st.one_of(
    st.builds(AddResponse, STATUS, INT64 | ID, INT64 | ID),
    st.builds(ReadResponse, st.just(Status.OK), INT64, INT64, OPTIONAL, st.none() | INT64, st.none() | INT64),
    st.builds(ReadResponse, FAILED, INT64, INT64, st.none(), st.none() | INT64, st.none() | INT64),
    st.builds(AuthResponse, STATUS, PLUGIN, SMALL),
    st.builds(WriteLacResponse, STATUS, INT64),
    st.builds(ReadLacResponse, STATUS, INT64, OPTIONAL, OPTIONAL),
    st.builds(ForceResponse, STATUS, INT64),
    st.builds(BookieInfoResponse, STATUS, INT64, INT64),
    st.builds(BookieInfoResponse, FAILED),
    st.builds(ListEntriesResponse, STATUS, INT64, OPTIONAL),
    st.builds(StartTlsResponse, STATUS),
)


def body_of(frame: bytes) -> bytes:
    assert frame[:4] == struct.pack(">I", len(frame) - 4)
    return frame[4:]


def bodies_of(frames: bytes) -> list[bytes]:
    found: list[bytes] = []
    position = 0
    while (place := next_frame(frames, position, len(frames))) is not None:
        found.append(frames[place[0] : place[1]])
        position = place[1]
    assert position == len(frames)
    return found


@settings(deadline=None)
@given(REQUESTS, TXN)
def test_requests_round_trip(request: Request, txn_id: int) -> None:
    body = body_of(v3.encode_request(request, txn_id))
    assert v3.is_v3(body)
    decoded = v3.decode_request(body)
    assert (decoded.txn_id, decoded.request, decoded.version, decoded.refusal) == (txn_id, request, 3, None)
    assert decoded.priority == (100 if getattr(request, "high_priority", False) else None)


@settings(deadline=None)
@given(RESPONSES, TXN)
def test_responses_round_trip(response: Response, txn_id: int) -> None:
    body = body_of(v3.encode_response(response, txn_id))
    assert v3.is_v3(body)
    assert v3.decode_response(body) == (txn_id, response)


@settings(deadline=None)
@given(REQUESTS, TXN, FAILED)
def test_every_request_can_be_refused_with_its_ids(request: Request, txn_id: int, status: Status) -> None:
    asked = v3.decode_request(body_of(v3.encode_request(request, txn_id)))
    answered, response = v3.decode_response(body_of(v3.encode_refusal(asked, status)))
    assert (answered, response) == (txn_id, v3.refusal_of(request, status))
    assert response.status is status


# Bulk and message form.

ADDS = st.lists(st.tuples(ID, TXN, SMALL, INT64), min_size=1, max_size=6)


@settings(deadline=None)
@given(INT64 | ID, KEY, st.booleans(), st.booleans(), PRIORITY, INT64 | ID, TXN, SMALL)
def test_the_bulk_form_of_an_add_equals_the_message_form(
    ledger_id: int, key: bytes, recovery: bool, deferred: bool, priority: int | None, entry_id: int, txn_id: int, rest: bytes
) -> None:
    request = make_add(ledger_id, entry_id, key, rest, recovery, False, deferred)
    encoder = V3AddEncoder(ledger_id, key, recovery=recovery, deferred_sync=deferred, priority=priority)
    assert encoder.encode(entry_id, txn_id, request.body) == v3.encode_request(request, txn_id, priority)


@settings(deadline=None)
@given(ID, KEY, st.booleans(), st.booleans(), PRIORITY, ADDS, st.integers(0, 20), st.binary(max_size=8))
def test_runs_of_adds_equal_the_message_form(
    ledger_id: int,
    key: bytes,
    recovery: bool,
    deferred: bool,
    priority: int | None,
    adds: list[tuple[int, int, bytes, int]],
    skip: int,
    after: bytes,
) -> None:
    encoder = V3AddEncoder(ledger_id, key, recovery=recovery, deferred_sync=deferred, priority=priority)
    frames = [encoder.encode(entry, txn, make_entry(ledger_id, entry, confirmed, rest)) for entry, txn, rest, confirmed in adds]
    buffer = bytes(skip) + b"".join(frames) + after
    position, taken = skip, 0
    while taken < len(frames):
        run = scan_v3_adds(buffer, position, len(buffer))
        if run is None:
            # Only a transaction id beyond 63 bits needs the message form.
            assert adds[taken][1] >= 2**63
            position += len(frames[taken])
            taken += 1
            continue
        v2_buffer, v2_run = run.as_v2(buffer)
        assert scan_adds(v2_buffer, 0, len(v2_buffer)) == v2_run
        for entry_id, txn_id, start, stop in zip(run.entry_ids, run.txn_ids, run.starts, run.stops, strict=True):
            expected = v3.decode_request(frames[taken][4:])
            found = AddRequest(run.ledger_id, entry_id, run.master_key, buffer[start:stop], recovery, run.high_priority, run.deferred_sync)
            assert (txn_id, found) == (expected.txn_id, expected.request)
            position += len(frames[taken])
            taken += 1
        assert run.end == position
        assert run.last_add_confirmed == max(adds[index][3] for index in range(taken - len(run.entry_ids), taken))


@settings(deadline=None)
@given(INT64 | ID, st.lists(st.tuples(INT64 | ID, TXN), max_size=6), STATUS, st.integers(0, 20), st.binary(max_size=8))
def test_runs_of_answers_equal_the_message_form(
    ledger_id: int, answers: list[tuple[int, int]], status: Status, skip: int, after: bytes
) -> None:
    frames = encode_v3_add_responses(ledger_id, [entry for entry, _ in answers], [txn for _, txn in answers], status)
    expected = [(txn_id, AddResponse(status, ledger_id, entry_id)) for entry_id, txn_id in answers]
    assert frames == b"".join(v3.encode_response(response, txn_id) for txn_id, response in expected)
    buffer = bytes(skip) + frames + after
    found: list[tuple[int, AddResponse]] = []
    position = skip
    while len(found) < len(answers):
        run = scan_v3_add_responses(buffer, position, len(buffer))
        if run is None:
            entry_id, txn_id = answers[len(found)]
            assert min(ledger_id, entry_id) < 0 or txn_id >= 2**63
            place = next_frame(buffer, position, len(buffer))
            assert place is not None
            position = place[1]
            found.append(expected[len(found)])
            continue
        found += [
            (txn_id, AddResponse(run.status, run.ledger_id, entry_id)) for entry_id, txn_id in zip(run.entry_ids, run.txn_ids, strict=True)
        ]
        position = run.end
    assert found == expected
    assert position == skip + len(frames)


@settings(deadline=None, max_examples=examples(300))
@given(ID, KEY, st.booleans(), PRIORITY, ADDS, st.data())
def test_damaged_adds_in_bulk_equal_the_message_form(
    ledger_id: int, key: bytes, deferred: bool, priority: int | None, adds: list[tuple[int, int, bytes, int]], data: st.DataObject
) -> None:
    encoder = V3AddEncoder(ledger_id, key, deferred_sync=deferred, priority=priority)
    buffer = bytearray(b"".join(encoder.encode(entry, txn, make_entry(ledger_id, entry, lac, rest)) for entry, txn, rest, lac in adds))
    for _ in range(data.draw(st.integers(1, 3))):
        buffer[data.draw(st.integers(0, len(buffer) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(buffer)
    run = scan_v3_adds(damaged, 0, len(damaged))
    if run is None:
        return
    for index, body in enumerate(bodies_of(damaged[: run.end])):
        decoded = v3.decode_request(body)
        entry = damaged[run.starts[index] : run.stops[index]]
        found = AddRequest(run.ledger_id, run.entry_ids[index], run.master_key, entry, run.recovery, run.high_priority, run.deferred_sync)
        assert (decoded.txn_id, decoded.request, decoded.refusal) == (run.txn_ids[index], found, None)


@settings(deadline=None, max_examples=examples(300))
@given(ID, st.lists(st.tuples(ID, TXN), min_size=1, max_size=5), STATUS, st.data())
def test_damaged_answers_in_bulk_equal_the_message_form(
    ledger_id: int, answers: list[tuple[int, int]], status: Status, data: st.DataObject
) -> None:
    buffer = bytearray(encode_v3_add_responses(ledger_id, [entry for entry, _ in answers], [txn for _, txn in answers], status))
    for _ in range(data.draw(st.integers(1, 3))):
        buffer[data.draw(st.integers(0, len(buffer) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(buffer)
    run = scan_v3_add_responses(damaged, 0, len(damaged))
    if run is None:
        return
    read = [v3.decode_response(body) for body in bodies_of(damaged[: run.end])]
    assert read == [
        (txn_id, AddResponse(run.status, run.ledger_id, entry_id)) for entry_id, txn_id in zip(run.entry_ids, run.txn_ids, strict=True)
    ]


# Garbage.


def decode_both(body: bytes) -> None:
    for decode in (v3.decode_request, v3.decode_response):
        with suppress(ProtocolError):
            assert decode(body) is not None
    frame = struct.pack(">I", len(body)) + body
    scan_v3_adds(frame, 0, len(frame))
    scan_v3_add_responses(frame, 0, len(frame))


@settings(deadline=None, max_examples=examples(300))
@given(
    st.sampled_from([b"", b"\x0a", b"\x0a\x06\x08\x03\x10\x02\x18\x01", b"\x0a\x06\x08\x03\x10\x02\x18\x01\xaa\x06"]),
    st.binary(max_size=80),
)
def test_garbage_gives_a_message_or_a_protocol_error(start: bytes, rest: bytes) -> None:
    decode_both(start + rest)


@settings(deadline=None, max_examples=examples(60))
@given(REQUESTS, RESPONSES, TXN)
def test_every_truncation_gives_a_message_or_a_protocol_error(request: Request, response: Response, txn_id: int) -> None:
    for frame in (v3.encode_request(request, txn_id), v3.encode_response(response, txn_id)):
        body = body_of(frame)
        for size in range(len(body)):
            decode_both(body[:size])
            # A truncated message inside a longer buffer must not be read beyond its end either.
            scan_v3_adds(frame, 0, size)
            scan_v3_add_responses(frame, 0, size)


@settings(deadline=None, max_examples=examples(300))
@given(REQUESTS, RESPONSES, TXN, st.data())
def test_changed_bytes_give_a_message_or_a_protocol_error(request: Request, response: Response, txn_id: int, data: st.DataObject) -> None:
    for frame in (v3.encode_request(request, txn_id), v3.encode_response(response, txn_id)):
        body = bytearray(body_of(frame))
        for _ in range(data.draw(st.integers(1, 4))):
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
        decode_both(bytes(body))
