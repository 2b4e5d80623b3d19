from __future__ import annotations

import struct

import pytest

from triplicate.errors import ArgumentError, ProtocolError
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import (
    AddRequest,
    AddResponse,
    AuthRequest,
    AuthResponse,
    BatchReadRequest,
    BatchReadResponse,
    ForceRequest,
    ForceResponse,
    ReadRequest,
    ReadResponse,
    Response,
    Status,
    Unserved,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    status_from_v2,
    status_to_v2,
    v2,
)

KEY = bytes(range(20))
CODEC = EntryCodec(5, DigestType.CRC32C, b"")
ENTRY = CODEC.encode(7, 6, 3, b"abc")


def body_of(frame: bytes) -> bytes:
    assert struct.unpack_from(">I", frame)[0] == len(frame) - 4
    return frame[4:]


@pytest.mark.parametrize("status", list(Status))
def test_every_status_travels_and_107_never_does(status: Status) -> None:
    code = status_to_v2(status)
    assert code != 107
    expected = Status.IO_ERROR if status is Status.UNKNOWN_LEDGER_STATE else status
    assert status_from_v2(code) is expected


def test_codes_from_a_peer_that_are_unknown_are_no_answer_about_the_entry() -> None:
    assert status_from_v2(107) is Status.UNKNOWN_LEDGER_STATE
    assert status_from_v2(108) is Status.IO_ERROR
    assert status_from_v2(2**32 - 1) is Status.IO_ERROR


@pytest.mark.parametrize(
    "response",
    [
        AddResponse(Status.UNKNOWN_LEDGER_STATE, 5, 7),
        ReadResponse(Status.UNKNOWN_LEDGER_STATE, 5, 7),
        BatchReadResponse(Status.UNKNOWN_LEDGER_STATE, 5, 7, 1),
    ],
)
def test_an_unknown_ledger_state_is_an_io_error_over_v2(response: Response) -> None:
    assert struct.unpack_from(">I", encode_response(response), 8)[0] == 101


def test_a_read_carries_the_key_exactly_when_it_fences() -> None:
    plain = encode_request(ReadRequest(5, 7, master_key=KEY))
    assert len(plain) == 24
    fencing = encode_request(ReadRequest(5, 7, fence=True, master_key=KEY))
    assert fencing.endswith(KEY)
    assert len(fencing) == 44
    assert len(encode_request(BatchReadRequest(5, 7, 1, 2, 3, master_key=KEY))) == 44
    assert len(encode_request(BatchReadRequest(5, 7, 1, 2, 3, fence=True, master_key=KEY))) == 64
    for key in (None, KEY[:19]):
        with pytest.raises(ArgumentError, match="master_key"):
            encode_request(ReadRequest(5, 7, fence=True, master_key=key))


def test_a_key_without_the_fence_flag_is_ignored() -> None:
    body = body_of(encode_request(ReadRequest(5, 7)))
    assert decode_request(body + KEY) == ReadRequest(5, 7)


def test_the_fence_flag_without_a_key_breaks_the_protocol() -> None:
    body = body_of(encode_request(ReadRequest(5, 7, fence=True, master_key=KEY)))
    for size in range(20, 40):
        with pytest.raises(ProtocolError, match="a fencing read of"):
            decode_request(body[:size])


def test_older_versions_are_read_and_answered_in_kind() -> None:
    ids = struct.pack(">qq", 5, 7)
    assert decode_request(struct.pack(">I", 2) + ids) == ReadRequest(5, 7)
    assert decode_request(struct.pack(">I", 0x01020000) + ids) == ReadRequest(5, 7)
    # Version 1 has the flag but no room for the key.
    assert decode_request(struct.pack(">I", 0x01020001) + ids + KEY) == ReadRequest(5, 7, fence=True)
    assert decode_request(struct.pack(">I", 1) + KEY + ENTRY) == AddRequest(5, 7, KEY, ENTRY)
    assert v2.split_header(struct.pack(">I", 0x01020001)) == (1, 2, 1)
    answer = AddResponse(Status.OK, 5, 7)
    assert encode_response(answer, 0)[4:8] == struct.pack(">I", 1)
    assert encode_response(answer, 1)[4:8] == struct.pack(">I", 0x01010000)
    for version in (0, 1, 2):
        assert decode_response(body_of(encode_response(answer, version))) == answer


def test_a_version_beyond_ours_is_answered_in_kind() -> None:
    add = bytearray(body_of(encode_request(AddRequest(5, 7, KEY, ENTRY))))
    read = bytearray(body_of(encode_request(ReadRequest(5, 7))))
    batch = bytearray(body_of(encode_request(BatchReadRequest(5, 7, 42, 2, 3))))
    expected: list[tuple[bytearray, Response | None]] = [
        (add, AddResponse(Status.BAD_VERSION, 5, 7)),
        (read, ReadResponse(Status.BAD_VERSION, 5, 7)),
        (batch, BatchReadResponse(Status.BAD_VERSION, 5, 7, 42)),
        (add[:30], None),
    ]
    for body, answer in expected:
        body[0] = 3
        with pytest.raises(Unserved) as caught:
            decode_request(bytes(body))
        assert caught.value.version == 3
        assert caught.value.answer == answer
    with pytest.raises(ProtocolError, match="a response of protocol version 3"):
        decode_response(b"\x03\x01\x00\x00")


@pytest.mark.parametrize("size", [16, 31])
def test_an_add_too_short_for_an_entry_is_a_bad_request(size: int) -> None:
    add = body_of(encode_request(AddRequest(5, 7, KEY, ENTRY)))[: 24 + size]
    with pytest.raises(Unserved, match=f"ledger 5 of {size} bytes") as caught:
        decode_request(add)
    assert (caught.value.version, caught.value.answer) == (2, AddResponse(Status.BAD_REQUEST, 5, 7))
    with pytest.raises(ProtocolError, match="an add"):
        decode_request(add[:39])


def test_a_batch_of_entries_travels_with_their_sizes() -> None:
    entries = tuple(CODEC.encode(entry_id, entry_id - 1, entry_id, b"x" * entry_id) for entry_id in range(3))
    response = BatchReadResponse(Status.OK, 5, 0, 42, entries)
    frame = encode_response(response)
    assert decode_response(body_of(frame)) == response
    stored = b"".join(struct.pack(">I", len(entry)) + entry for entry in entries)
    assert v2.batch_read_head(5, 0, 42, len(stored)) + stored == frame
    with pytest.raises(ProtocolError, match="middle of one"):
        decode_response(body_of(frame)[:-1])
    with pytest.raises(ProtocolError, match="middle of one"):
        decode_response(body_of(frame) + b"\x00\x00")


def test_an_answer_to_a_last_entry_read_keeps_the_requests_id() -> None:
    answer = decode_response(body_of(encode_response(ReadResponse(Status.OK, 5, -1, ENTRY))))
    assert answer == ReadResponse(Status.OK, 5, -1, ENTRY)


def test_no_entry_follows_an_error() -> None:
    assert len(encode_response(ReadResponse(Status.FENCED, 5, 7, ENTRY))) == 28
    assert len(encode_response(BatchReadResponse(Status.NO_ENTRY, 5, 7, 42, (ENTRY,)))) == 36
    for operation, tail in ((2, ENTRY), (1, b"x"), (7, bytes(8) + struct.pack(">I", 1) + b"x")):
        body = struct.pack(">IIqq", 2 << 24 | operation << 16, 2, 5, 7) + tail
        with pytest.raises(ProtocolError):
            decode_response(body)


def test_what_version_2_cannot_carry_is_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match="previous_lac"):
        encode_request(ReadRequest(5, -1, previous_lac=3))
    with pytest.raises(ArgumentError, match="deferred_sync"):
        encode_request(AddRequest(5, 7, KEY, ENTRY, deferred_sync=True))
    with pytest.raises(ArgumentError, match="no ForceRequest"):
        encode_request(ForceRequest(5))
    with pytest.raises(ArgumentError, match="no ForceResponse"):
        encode_response(ForceResponse(Status.OK, 5))
    with pytest.raises(ArgumentError, match="must carry its entry"):
        encode_response(ReadResponse(Status.OK, 5, 7))


def test_an_add_names_the_ids_inside_its_entry() -> None:
    for ledger_id, entry_id, body in ((6, 7, ENTRY), (5, 8, ENTRY), (5, 7, ENTRY[:31])):
        with pytest.raises(ArgumentError, match=f"body is not entry {entry_id} of ledger {ledger_id}"):
            encode_request(AddRequest(ledger_id, entry_id, KEY, body))
    with pytest.raises(ArgumentError, match="master_key has 19 bytes"):
        encode_request(AddRequest(5, 7, KEY[1:], ENTRY))


def test_authentication_tokens_travel_both_ways() -> None:
    assert decode_request(body_of(encode_request(AuthRequest("sasl", b"\xff")))) == AuthRequest("sasl", b"\xff")
    answer = AuthResponse(Status.OK, "AuthDisabledPlugin", b"")
    assert decode_response(body_of(encode_response(answer))) == answer
    for damaged in (b"", b"\x0a\x04sasl", b"\x0a\x01\xff\x12\x00", b"\xff"):
        with pytest.raises(ProtocolError, match="authentication packet"):
            decode_request(struct.pack(">I", 0x02030000) + damaged)


@pytest.mark.parametrize("operation", [0, 4, 5, 6, 8, 255])
def test_operations_that_v2_has_not_break_the_protocol(operation: int) -> None:
    body = struct.pack(">I", 2 << 24 | operation << 16) + bytes(60)
    with pytest.raises(ProtocolError, match=f"unknown operation {operation} in a request"):
        decode_request(body)
    with pytest.raises(ProtocolError, match=f"unknown operation {operation} in a response"):
        decode_response(body)
