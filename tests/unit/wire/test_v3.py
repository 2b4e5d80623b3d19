from __future__ import annotations

import struct
from dataclasses import replace

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
    V3Request,
    WriteLacRequest,
    WriteLacResponse,
    status_from_v3,
    v3,
)
from triplicate.wire import bookkeeper_protocol_pb2 as pb

KEY = bytes(range(20))
CODEC = EntryCodec(5, DigestType.CRC32C, b"")
ENTRY = CODEC.encode(7, 6, 3, b"abc")
LAC = CODEC.encode_lac(6)


def body_of(frame: bytes) -> bytes:
    assert struct.unpack_from(">I", frame)[0] == len(frame) - 4
    return frame[4:]


def sent(request: Request, priority: int | None = None) -> pb.Request:
    return pb.Request.FromString(body_of(v3.encode_request(request, 1, priority)))


def answered(response: Response) -> pb.Response:
    return pb.Response.FromString(body_of(v3.encode_response(response, 1)))


def refused(frame: bytes) -> pb.Response:
    return pb.Response.FromString(body_of(frame))


# Values.


def test_numbers_are_those_of_the_enumerations() -> None:
    assert [status.value for status in Status] == sorted(pb.StatusCode.values())
    names = {
        v3.OperationType.READ: pb.READ_ENTRY,
        v3.OperationType.ADD: pb.ADD_ENTRY,
        v3.OperationType.AUTH: pb.AUTH,
        v3.OperationType.WRITE_LAC: pb.WRITE_LAC,
        v3.OperationType.READ_LAC: pb.READ_LAC,
        v3.OperationType.BOOKIE_INFO: pb.GET_BOOKIE_INFO,
        v3.OperationType.START_TLS: pb.START_TLS,
        v3.OperationType.FORCE: pb.FORCE_LEDGER,
        v3.OperationType.LIST_ENTRIES: pb.GET_LIST_OF_ENTRIES_OF_LEDGER,
    }
    assert list(names) == list(v3.OperationType)
    assert all(int(operation) == number for operation, number in names.items())
    unserved = {pb.RANGE_READ_ENTRY, pb.RANGE_ADD_ENTRY, pb.BATCH_READ_ENTRY}
    assert set(pb.OperationType.values()) == set(v3.OperationType) | unserved
    assert v3.VERSION == pb.VERSION_THREE
    assert BookieInfoRequest().requested == pb.GetBookieInfoRequest.TOTAL_DISK_CAPACITY | pb.GetBookieInfoRequest.FREE_DISK_SPACE


# Presence: what is not meant is not written.


def test_a_plain_read_carries_nothing_but_its_ids() -> None:
    message = sent(ReadRequest(5, 7, master_key=KEY))
    assert [field.name for field, _ in message.ListFields()] == ["header", "readRequest"]
    assert [field.name for field, _ in message.readRequest.ListFields()] == ["ledgerId", "entryId"]
    assert [field.name for field, _ in message.header.ListFields()] == ["version", "operation", "txnId"]


def test_a_plain_add_carries_neither_flags_nor_priority() -> None:
    message = sent(AddRequest(5, 7, KEY, ENTRY))
    assert [field.name for field, _ in message.addRequest.ListFields()] == ["ledgerId", "entryId", "masterKey", "body"]
    assert not message.header.HasField("priority")


def test_flags_and_priority_are_written_when_they_are_meant() -> None:
    deferred = sent(AddRequest(5, 7, KEY, ENTRY, deferred_sync=True)).addRequest
    assert (deferred.writeFlags, deferred.HasField("flag")) == (1, False)
    recovery = sent(AddRequest(5, 7, KEY, ENTRY, recovery=True, high_priority=True))
    assert (recovery.addRequest.flag, recovery.addRequest.HasField("writeFlags"), recovery.header.priority) == (1, False, 100)
    assert sent(AddRequest(5, 7, KEY, ENTRY, high_priority=True), priority=0).header.priority == 0
    assert sent(ForceRequest(5), priority=7).header.priority == 7


@pytest.mark.parametrize("poll", [ReadRequest(5, -1, previous_lac=0), ReadRequest(5, -1, previous_lac=-1, timeout_ms=0)])
def test_a_long_poll_is_one_by_the_presence_of_its_field(poll: ReadRequest) -> None:
    assert sent(poll).readRequest.HasField("previousLAC")
    assert v3.decode_request(body_of(v3.encode_request(poll, 1))).request == poll
    assert v3.decode_request(body_of(v3.encode_request(ReadRequest(5, -1), 1))).request == ReadRequest(5, -1)


def test_a_fencing_read_is_no_long_poll() -> None:
    with pytest.raises(ArgumentError, match="cannot be a long poll"):
        v3.encode_request(ReadRequest(5, -1, fence=True, master_key=KEY, previous_lac=3), 1)
    message = sent(ReadRequest(5, -1, fence=True, master_key=KEY))
    message.readRequest.previousLAC = 3
    decoded = v3.decode_request(message.SerializeToString())
    assert decoded.request == ReadRequest(5, -1, fence=True, master_key=KEY)


def test_flags_that_are_unknown_count_as_absent() -> None:
    message = sent(ReadRequest(5, 7))
    message.readRequest.flag = 3
    assert v3.decode_request(message.SerializeToString()).request == ReadRequest(5, 7)
    add = sent(AddRequest(5, 7, KEY, ENTRY))
    add.addRequest.flag, add.addRequest.writeFlags = 2, 6
    assert v3.decode_request(add.SerializeToString()).request == AddRequest(5, 7, KEY, ENTRY)


def test_fields_may_come_in_any_order_and_unknown_ones_are_passed_over() -> None:
    message = sent(AddRequest(5, 7, KEY, ENTRY))
    header = message.header.SerializeToString()
    add = message.addRequest.SerializeToString()
    body = b"\xfa\x07\x01x" + b"\xaa\x06" + bytes([len(add)]) + add + b"\x0a" + bytes([len(header)]) + header
    assert v3.decode_request(body) == V3Request(1, AddRequest(5, 7, KEY, ENTRY), v3.OperationType.ADD)
    message.requestContext.add(key="trace", value="1")
    assert v3.decode_request(message.SerializeToString()).request == AddRequest(5, 7, KEY, ENTRY)


# Requests that are answered, not served.


def test_another_version_is_refused_with_the_operations_own_part() -> None:
    message = sent(ReadRequest(5, 7))
    message.header.version = 4
    asked = v3.decode_request(message.SerializeToString())
    assert (asked.version, asked.request, asked.refusal) == (4, ReadRequest(5, 7), Status.BAD_VERSION)
    answer = refused(v3.encode_refusal(asked, Status.BAD_VERSION))
    assert (answer.header.version, answer.header.operation, answer.header.txnId) == (3, 1, 1)
    assert (answer.status, answer.readResponse.status, answer.readResponse.ledgerId, answer.readResponse.entryId) == (503, 503, 5, 7)


@pytest.mark.parametrize("operation", [0, 3, 4, 12, 13, 99, 2**31 - 1])
def test_an_unknown_operation_is_refused_with_a_status_alone(operation: int) -> None:
    message = sent(ReadRequest(5, 7), priority=9)
    message.header.operation = operation
    asked = v3.decode_request(message.SerializeToString())
    assert asked == V3Request(1, None, operation, 3, 9, Status.BAD_REQUEST)
    answer = refused(v3.encode_unknown_operation(asked))
    assert [field.name for field, _ in answer.ListFields()] == ["header", "status"]
    assert (answer.header, answer.status) == (message.header, 404)
    assert v3.encode_refusal(asked, Status.BAD_REQUEST) == v3.encode_unknown_operation(asked)


def test_a_request_without_its_part_is_a_bad_request() -> None:
    message = sent(ReadRequest(5, 7))
    message.header.operation = v3.OperationType.ADD
    asked = v3.decode_request(message.SerializeToString())
    assert (asked.request, asked.refusal) == (None, Status.BAD_REQUEST)


def test_before_authentication_everything_is_refused_with_a_status_alone() -> None:
    asked = v3.decode_request(body_of(v3.encode_request(ReadRequest(5, 7), 44)))
    answer = refused(v3.encode_unauthenticated(asked))
    assert [field.name for field, _ in answer.ListFields()] == ["header", "status"]
    assert (answer.status, answer.header.txnId, answer.header.operation) == (502, 44, 1)
    assert v3.decode_response(body_of(v3.encode_unauthenticated(asked))) == (44, ReadResponse(Status.UNAUTHORIZED, v3.NO_ID, v3.NO_ID))


def test_a_key_that_no_ledger_can_have_is_unauthorized() -> None:
    for request, field in (
        (AddRequest(5, 7, KEY, ENTRY), "addRequest"),
        (WriteLacRequest(5, 6, KEY, LAC), "writeLacRequest"),
        (ReadRequest(5, 7, fence=True, master_key=KEY), "readRequest"),
    ):
        for key in (b"", KEY[:19], KEY + b"x"):
            message = sent(request)
            getattr(message, field).masterKey = key
            assert v3.decode_request(message.SerializeToString()).refusal is Status.UNAUTHORIZED
    message = sent(ReadRequest(5, 7, fence=True, master_key=KEY))
    message.readRequest.ClearField("masterKey")
    asked = v3.decode_request(message.SerializeToString())
    assert (asked.request, asked.refusal) == (ReadRequest(5, 7, fence=True), Status.UNAUTHORIZED)


def test_an_add_of_another_entry_than_it_says_is_a_bad_request() -> None:
    for field, value in (("ledgerId", 6), ("entryId", 8), ("body", ENTRY[:31]), ("body", b"")):
        message = sent(AddRequest(5, 7, KEY, ENTRY))
        setattr(message.addRequest, field, value)
        asked = v3.decode_request(message.SerializeToString())
        assert isinstance(asked.request, AddRequest)
        assert asked.refusal is Status.BAD_REQUEST


def test_a_record_of_another_ledger_is_a_bad_request_and_a_newer_one_is_not() -> None:
    message = sent(WriteLacRequest(5, 4, KEY, LAC))
    assert v3.decode_request(message.SerializeToString()).refusal is None
    for field, value in (("ledgerId", 6), ("body", LAC[:15])):
        message = sent(WriteLacRequest(5, 4, KEY, LAC))
        setattr(message.writeLacRequest, field, value)
        assert v3.decode_request(message.SerializeToString()).refusal is Status.BAD_REQUEST


def test_a_piggyback_poll_for_one_entry_is_a_bad_request() -> None:
    message = sent(ReadRequest(5, -1, previous_lac=3, piggyback=True))
    message.readRequest.entryId = 4
    assert v3.decode_request(message.SerializeToString()).refusal is Status.BAD_REQUEST
    with pytest.raises(ArgumentError, match="piggyback"):
        v3.encode_request(ReadRequest(5, 4, previous_lac=3, piggyback=True), 1)


# Answers, written.

FAILURES: list[Response] = [
    AddResponse(Status.FENCED, 5, 7),
    ReadResponse(Status.NO_ENTRY, 5, 7),
    WriteLacResponse(Status.READ_ONLY, 5),
    ReadLacResponse(Status.NO_ENTRY, 5),
    ForceResponse(Status.IO_ERROR, 5),
    ListEntriesResponse(Status.NO_LEDGER, 5),
    BookieInfoResponse(Status.IO_ERROR),
]


@pytest.mark.parametrize("response", FAILURES, ids=lambda response: type(response).__name__)
def test_a_failure_carries_its_status_twice_and_its_ids(response: Response) -> None:
    message = answered(response)
    part = message.ListFields()[-1][1]
    assert (message.status, part.status) == (response.status, response.status)
    for name, field in (("ledger_id", "ledgerId"), ("entry_id", "entryId")):
        if hasattr(response, name):
            assert getattr(part, field) == getattr(response, name)


@pytest.mark.parametrize("status", list(Status))
def test_every_status_travels(status: Status) -> None:
    for response in (AddResponse(status, 5, 7), ReadResponse(status, 5, 7), ForceResponse(status, 5), AuthResponse(status, "sasl", b"x")):
        assert v3.decode_response(body_of(v3.encode_response(response, 9))) == (9, response)


def test_no_entry_follows_an_error() -> None:
    assert not answered(ReadResponse(Status.FENCED, 5, 7, ENTRY)).readResponse.HasField("body")
    message = answered(ReadResponse(Status.OK, 5, 7, ENTRY))
    message.status = Status.IO_ERROR
    assert v3.decode_response(message.SerializeToString()) == (1, ReadResponse(Status.IO_ERROR, 5, 7))


def test_information_about_a_bookie_carries_both_figures() -> None:
    with pytest.raises(ArgumentError, match="free_bytes"):
        v3.encode_response(BookieInfoResponse(Status.OK, 10), 1)
    message = answered(BookieInfoResponse(Status.OK, 0, 0)).getBookieInfoResponse
    assert message.HasField("totalDiskCapacity")
    assert message.HasField("freeDiskSpace")


def test_tls_is_granted_by_an_empty_part_and_refused_without() -> None:
    assert answered(StartTlsResponse(Status.OK)).HasField("startTLSResponse")
    assert not answered(StartTlsResponse(Status.BAD_REQUEST)).HasField("startTLSResponse")
    assert sent(StartTlsRequest()).HasField("startTLSRequest")


# Answers, read.


def test_the_envelopes_status_counts_unless_it_is_ok() -> None:
    cases = [(0, 0, Status.OK), (0, 403, Status.NO_ENTRY), (501, 0, Status.IO_ERROR), (504, 501, Status.FENCED)]
    for top, inner, expected in cases:
        message = answered(AddResponse(Status.OK, 5, 7))
        message.status, message.addResponse.status = top, inner
        assert v3.decode_response(message.SerializeToString()) == (1, AddResponse(expected, 5, 7))


@pytest.mark.parametrize("code", [1, 2, 104, 401, 405, 500, 508, -1, 2**31 - 1, -(2**31)])
def test_a_status_that_is_unknown_is_no_answer_about_the_entry(code: int) -> None:
    assert status_from_v3(code) is Status.IO_ERROR
    for top, inner in ((code, 0), (0, code), (code, 403)):
        message = answered(ReadResponse(Status.OK, 5, 7))
        message.status, message.readResponse.status = top, inner
        assert v3.decode_response(message.SerializeToString()) == (1, ReadResponse(Status.IO_ERROR, 5, 7))


def test_an_answer_without_its_part_keeps_a_failure_and_proves_nothing() -> None:
    for response in (*FAILURES, AuthResponse(Status.UNAUTHORIZED, "sasl", b"")):
        message = answered(response)
        message.ClearField(message.ListFields()[-1][0].name)
        txn_id, found = v3.decode_response(message.SerializeToString())
        assert (txn_id, type(found), found.status) == (1, type(response), response.status)
        message.status = Status.OK
        assert v3.decode_response(message.SerializeToString())[1].status is Status.IO_ERROR
    tls = answered(StartTlsResponse(Status.OK))
    tls.ClearField("startTLSResponse")
    assert v3.decode_response(tls.SerializeToString()) == (1, StartTlsResponse(Status.OK))


def test_an_answer_with_another_operations_part_lacks_its_own() -> None:
    message = answered(AddResponse(Status.OK, 5, 7))
    message.header.operation = v3.OperationType.READ
    assert v3.decode_response(message.SerializeToString()) == (1, ReadResponse(Status.IO_ERROR, v3.NO_ID, v3.NO_ID))


def test_a_long_poll_without_news_has_neither_entry_nor_id() -> None:
    nothing = ReadResponse(Status.OK, 5, -1, max_lac=6)
    assert v3.decode_response(body_of(v3.encode_response(nothing, 1))) == (1, nothing)
    news = ReadResponse(Status.OK, 5, 7, ENTRY, 7, 1_700_000_000_000)
    assert v3.decode_response(body_of(v3.encode_response(news, 1))) == (1, news)


def test_an_explicit_record_without_an_entry_survives_its_io_error() -> None:
    quirk = ReadLacResponse(Status.IO_ERROR, 5, LAC)
    assert v3.decode_response(body_of(v3.encode_response(quirk, 1))) == (1, quirk)
    empty = ReadLacResponse(Status.OK, 5, b"", b"")
    assert v3.decode_response(body_of(v3.encode_response(empty, 1))) == (1, empty)


def test_an_answer_to_what_is_never_asked_breaks_the_protocol() -> None:
    message = answered(AddResponse(Status.OK, 5, 7))
    for operation in (3, 12, 99):
        message.header.operation = operation
        with pytest.raises(ProtocolError, match=f"operation {operation}"):
            v3.decode_response(message.SerializeToString())


# Impossible messages.


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x0a",
        b"\x0a\x00",
        b"\x0a\x04\x08\x03\x10\x02",
        b"\x0a\x06\x08\x03\x10\x02\x18\x01\xa2\x06\x00",
        b"\x02\x01\x00\x00",
        b"\xff" * 40,
    ],
    ids=["empty", "tag", "empty header", "no transaction", "empty read", "version 2", "ones"],
)
def test_what_lacks_a_required_field_breaks_the_protocol(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="of protocol version 3"):
        v3.decode_request(body)
    with pytest.raises(ProtocolError, match="of protocol version 3"):
        v3.decode_response(body)


def test_a_plugin_that_is_not_text_breaks_the_protocol() -> None:
    for frame, decode in (
        (v3.encode_request(AuthRequest("~~", b""), 1), v3.decode_request),
        (v3.encode_response(AuthResponse(Status.OK, "~~", b""), 1), v3.decode_response),
    ):
        with pytest.raises(ProtocolError, match="not UTF-8"):
            decode(body_of(frame).replace(b"~~", b"\xff\xfe"))


def test_what_version_3_cannot_carry_is_refused_by_name() -> None:
    add = AddRequest(5, 7, KEY, ENTRY)
    cases: list[tuple[Request, str]] = [
        (BatchReadRequest(5, 7, 1, 2, 3), "no BatchReadRequest"),
        (replace(add, master_key=KEY[:19]), "master_key"),
        (replace(add, entry_id=8), "body is not entry 8 of ledger 5"),
        (ReadRequest(5, 7, fence=True), "master_key"),
        (WriteLacRequest(5, 6, b"", LAC), "master_key"),
        (WriteLacRequest(6, 6, KEY, LAC), "record of ledger 6"),
        (ReadLacRequest(2**63), "ReadLacRequest cannot be written"),
        (ListEntriesRequest(-(2**63) - 1), "ListEntriesRequest cannot be written"),
        (AuthRequest("\ud800", b""), "AuthRequest cannot be written"),
    ]
    for request, message in cases:
        with pytest.raises(ArgumentError, match=message):
            v3.encode_request(request, 1)
    for txn_id in (-1, 2**64):
        with pytest.raises(ArgumentError, match="cannot be written"):
            v3.encode_request(add, txn_id)
        with pytest.raises(ArgumentError, match="cannot be written"):
            v3.encode_response(AddResponse(Status.OK, 5, 7), txn_id)
    with pytest.raises(ArgumentError, match="no BatchReadResponse"):
        v3.encode_response(BatchReadResponse(Status.OK, 5, 7, 1), 1)


def test_a_refusal_has_a_form_for_every_request() -> None:
    assert v3.refusal_of(BatchReadRequest(5, 7, 42, 2, 3), Status.NO_ENTRY) == BatchReadResponse(Status.NO_ENTRY, 5, 7, 42)
    assert v3.refusal_of(StartTlsRequest(), Status.BAD_REQUEST) == StartTlsResponse(Status.BAD_REQUEST)
    assert v3.refusal_of(AuthRequest("sasl", b"x"), Status.UNAUTHORIZED) == AuthResponse(Status.UNAUTHORIZED, "sasl", b"")
