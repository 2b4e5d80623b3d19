"""For any bytes of a connection, in any chunks, the bulk form reads the same as a plain loop over frames and messages."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.errors import ProtocolError
from triplicate.wire import (
    ADD_HEAD_BYTES,
    FLAG_HIGH_PRIORITY,
    FLAG_RECOVERY_ADD,
    AddRequest,
    AddResponse,
    FrameBuffer,
    ReadRequest,
    ReadResponse,
    Status,
    add_prefix,
    decode_request,
    decode_response,
    encode_add_responses,
    encode_alternating_add_responses,
    encode_request,
    encode_response,
    iter_adds,
    next_frame,
    scan_add_responses,
    scan_adds,
)
from triplicate.wire import frames as frames_module

LIMIT = 120
KEYS = st.sampled_from([bytes(20), b"k" * 20])
LEDGERS = st.sampled_from([0, 1, 2**40, -1])
ENTRIES = st.integers(-2, 5)


def make_add(ledger_id: int, entry_id: int, last_add_confirmed: int, key: bytes, flags: int, payload: bytes) -> bytes:
    entry = struct.pack(">qqqq", ledger_id, entry_id, last_add_confirmed, 0) + payload
    return add_prefix(len(entry), flags, key) + entry


def damage(frame: bytes, place: int, byte: int) -> bytes:
    place %= len(frame)
    return frame[:place] + bytes([byte]) + frame[place + 1 :]


ADDS = st.builds(make_add, LEDGERS, ENTRIES, st.integers(-1, 9), KEYS, st.sampled_from([0, 0, 2, 4, 6]), st.binary(max_size=LIMIT - 60))
READS = st.builds(lambda ledger_id, entry_id: encode_request(ReadRequest(ledger_id, entry_id)), LEDGERS, ENTRIES)
OLD_ADDS = ADDS.map(lambda frame: frame[:4] + b"\x01" + frame[5:])
SAME_ADDS = st.tuples(ADDS, st.integers(1, 4)).map(lambda pair: pair[0] * pair[1])
DAMAGED_ADDS = st.builds(damage, ADDS, st.integers(0, 200), st.integers(0, 255))
REQUEST_STREAMS = st.lists(st.one_of(SAME_ADDS, ADDS, READS, OLD_ADDS, DAMAGED_ADDS, st.binary(max_size=9)), max_size=12).map(b"".join)

ADD_ANSWERS = st.builds(encode_add_responses, LEDGERS, st.lists(ENTRIES, max_size=5), st.sampled_from(Status))
READ_ANSWERS = st.builds(lambda ledger_id, entry_id: encode_response(ReadResponse(Status.NO_ENTRY, ledger_id, entry_id)), LEDGERS, ENTRIES)
DAMAGED_ANSWERS = st.builds(damage, ADD_ANSWERS.filter(bool), st.integers(0, 200), st.integers(0, 255))
ANSWER_STREAMS = st.lists(st.one_of(ADD_ANSWERS, READ_ANSWERS, DAMAGED_ANSWERS, st.binary(max_size=9)), max_size=12).map(b"".join)
CUTS = st.lists(st.integers(0, 1500), max_size=10)


def pieces(stream: bytes, cuts: list[int]) -> Iterator[bytes]:
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for start, stop in pairwise(places):
        yield stream[start:stop]


def plain_loop(stream: bytes, decode: Callable[[bytes], object]) -> list[object]:
    """Every message before the first error, then "refused" if there is one."""
    found: list[object] = []
    position = 0
    while position + 4 <= len(stream):
        size = int.from_bytes(stream[position : position + 4], "big")
        if size + 4 > LIMIT:
            return [*found, "refused"]
        if position + 4 + size > len(stream):
            break
        try:
            found.append(decode(stream[position + 4 : position + 4 + size]))
        except ProtocolError:
            return [*found, "refused"]
        position += 4 + size
    return found


def requests_in_bulk(buffer: bytes, position: int, found: list[object]) -> int:
    run = scan_adds(buffer, position, len(buffer), LIMIT)
    if run is None:
        return position
    lacs = []
    for entry_id, start, stop in zip(run.entry_ids, run.offsets, run.offsets[1:], strict=False):
        body = buffer[start + ADD_HEAD_BYTES : stop]
        flags = (FLAG_RECOVERY_ADD if run.recovery else 0) | (FLAG_HIGH_PRIORITY if run.high_priority else 0)
        has_no_flags = buffer[start + 6 : start + 8] == b"\0\0"  # also no unknown flag
        assert not (flags and has_no_flags)
        if has_no_flags:
            assert buffer[start:stop] == add_prefix(len(body), 0, run.master_key) + body
        found.append(AddRequest(run.ledger_id, entry_id, run.master_key, body, recovery=run.recovery, high_priority=run.high_priority))
        lacs.append(struct.unpack_from(">q", body, 16)[0])
    assert run.last_add_confirmed == max(lacs)
    return run.offsets[-1]


def requests_one_by_one(buffer: bytes, position: int, found: list[object]) -> int:
    for master_key, ledger_id, entry_id, last_add_confirmed, start, stop in iter_adds(buffer, position, len(buffer), LIMIT):
        body = buffer[start:stop]
        assert buffer[position:stop] == add_prefix(len(body), 0, master_key) + body
        assert struct.unpack_from(">qqq", body) == (ledger_id, entry_id, last_add_confirmed)
        found.append(AddRequest(ledger_id, entry_id, master_key, body))
        position = stop
    return position


def answers_in_bulk(buffer: bytes, position: int, found: list[object]) -> int:
    run = scan_add_responses(buffer, position, len(buffer))
    if run is None:
        return position
    found.extend(AddResponse(run.status, run.ledger_id, entry_id) for entry_id in run.entry_ids)
    return run.end


InBulk = Callable[[bytes, int, list[object]], int]


def bulk_loop(chunks: Iterator[bytes], decode: Callable[[bytes], object], in_bulk: InBulk, *, apart: bool = False) -> list[object]:
    frames = FrameBuffer(LIMIT)
    found: list[object] = []
    try:
        for chunk in chunks:
            buffer, more, start = frames.feed_apart(chunk) if apart else (frames.feed(chunk), b"", 0)
            position = take_frames(buffer, 0, decode, in_bulk, found)
            if more:
                assert position == len(buffer)
                buffer, position = more, take_frames(more, start, decode, in_bulk, found)
            frames.keep(buffer, position)
    except ProtocolError:
        found.append("refused")
    return found


def take_frames(buffer: bytes, position: int, decode: Callable[[bytes], object], in_bulk: InBulk, found: list[object]) -> int:
    while True:
        reached = in_bulk(buffer, position, found)
        if reached == position:
            frame = next_frame(buffer, position, len(buffer), LIMIT)
            if frame is None:
                return position
            found.append(decode(buffer[frame[0] : frame[1]]))
            reached = frame[1]
        position = reached


@settings(deadline=None, max_examples=examples(400))
@given(REQUEST_STREAMS, CUTS)
def test_adds_in_bulk_read_as_messages_do(stream: bytes, cuts: list[int]) -> None:
    assert bulk_loop(pieces(stream, cuts), decode_request, requests_in_bulk) == plain_loop(stream, decode_request)


@settings(deadline=None, max_examples=examples(400))
@given(REQUEST_STREAMS, CUTS)
def test_adds_one_by_one_read_as_messages_do(stream: bytes, cuts: list[int]) -> None:
    assert bulk_loop(pieces(stream, cuts), decode_request, requests_one_by_one) == plain_loop(stream, decode_request)


@settings(deadline=None, max_examples=examples(400))
@given(REQUEST_STREAMS, CUTS)
def test_chunks_not_joined_with_what_came_before_read_as_messages_do(stream: bytes, cuts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames_module, "APART_BYTES", 1)
        assert bulk_loop(pieces(stream, cuts), decode_request, requests_in_bulk, apart=True) == plain_loop(stream, decode_request)


@settings(deadline=None, max_examples=examples(400))
@given(ANSWER_STREAMS, CUTS)
def test_answers_in_bulk_read_as_messages_do(stream: bytes, cuts: list[int]) -> None:
    assert bulk_loop(pieces(stream, cuts), decode_response, answers_in_bulk) == plain_loop(stream, decode_response)


@settings(deadline=None)
@given(st.integers(-(2**63), 2**63 - 1), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), st.sampled_from(Status))
def test_answers_in_bulk_are_written_as_messages_are(ledger_id: int, entry_ids: list[int], status: Status) -> None:
    expected = b"".join(encode_response(AddResponse(status, ledger_id, entry_id)) for entry_id in entry_ids)
    assert encode_add_responses(ledger_id, entry_ids, status) == expected


NUMBERS = st.integers(-(2**63), 2**63 - 1)


@settings(deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=20), st.sampled_from(Status))
def test_answers_of_alternating_ledgers_are_written_as_messages_are(pairs: list[tuple[int, int]], status: Status) -> None:
    expected = b"".join(encode_response(AddResponse(status, *pair)) for pair in pairs)
    assert encode_alternating_add_responses([pair[0] for pair in pairs], [pair[1] for pair in pairs], status) == expected
