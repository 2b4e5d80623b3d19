"""Bytes captured from Apache BookKeeper: we read them, and write the same again.

``captured/*.json`` come from a Java client and a Java bookie behind a recording proxy, and from their ZooKeeper. Each file names the
releases. ``python -m tests.interop.capture`` rewrites them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from triplicate.ledger import DigestType, EntryCodec, LedgerState, decode_availability, decode_metadata, encode_metadata
from triplicate.metadata import decode_cookie, decode_layout, decode_service_info, encode_cookie, encode_layout, encode_service_info
from triplicate.wire import (
    AddRequest,
    AddResponse,
    AuthResponse,
    BatchReadRequest,
    BatchReadResponse,
    BookieInfoResponse,
    ForceResponse,
    ListEntriesResponse,
    ReadLacResponse,
    ReadRequest,
    ReadResponse,
    Request,
    Response,
    StartTlsResponse,
    Status,
    WriteLacRequest,
    WriteLacResponse,
    v2,
    v3,
)

FOLDER = Path(__file__).with_name("captured")
RELEASES = ("4.18.0", "4.14.7")
NEWEST = RELEASES[0]


class Captured(NamedTuple):
    wire: str
    release: str
    step: str
    sender: str
    frame: bytes

    @property
    def is_request(self) -> bool:
        return self.sender != "Java bookie"

    def request(self) -> Request:
        if self.wire == "v2":
            return v2.decode_request(self.frame[4:])
        found = v3.decode_request(self.frame[4:])
        assert found.request is not None
        # A master key of a length that no ledger has is parsed all the same.
        assert found.refusal is None
        return found.request

    def response(self) -> Response:
        return v2.decode_response(self.frame[4:]) if self.wire == "v2" else v3.decode_response(self.frame[4:])[1]

    def again(self) -> bytes:
        """Decoded and encoded."""
        if self.is_request:
            if self.wire == "v2":
                return v2.encode_request(self.request())
            return v3.encode_request(self.request(), v3.decode_request(self.frame[4:]).txn_id)
        if self.wire == "v2":
            return v2.encode_response(self.response())
        return v3.encode_response(self.response(), v3.decode_response(self.frame[4:])[0])


def load(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return content


def frames(wire: str, release: str) -> list[Captured]:
    found = load(f"{wire}-{release}.json")["frames"]
    return [Captured(wire, release, one["step"], one["sender"], bytes.fromhex(one["frame"])) for one in found]


PASSWORD = bytes.fromhex(load(f"v2-{NEWEST}.json")["password"])
ALL = [frame for wire in ("v2", "v3") for release in RELEASES for frame in frames(wire, release)]
NODES = {(release, path): bytes.fromhex(data) for release in RELEASES for path, data in load(f"znodes-{release}.json")["nodes"].items()}


def ids_of(captured: list[Captured]) -> list[str]:
    return [f"{one.wire}-{one.release}-{number}-{one.step.replace(' ', '-')}" for number, one in enumerate(captured)]


def varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position


def fields_of(message: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of one protobuf message in their order: number, and value or bytes."""
    found: list[tuple[int, int | bytes]] = []
    position = 0
    while position < len(message):
        tag, position = varint(message, position)
        if tag & 7 == 0:
            value, position = varint(message, position)
            found.append((tag >> 3, value))
        else:
            assert tag & 7 == 2
            size, position = varint(message, position)
            found.append((tag >> 3, message[position : position + size]))
            position += size
    return found


def writes_its_flag_first(one: Captured) -> bool:
    """BookKeeper 4.18 writes the flag of a request, field 100, before the others; 4.14 writes it last, as we do."""
    request = one.request() if one.is_request else None
    flagged = (isinstance(request, ReadRequest) and (request.fence or request.piggyback)) or (
        isinstance(request, AddRequest) and request.recovery
    )
    return one.wire == "v3" and one.release == NEWEST and one.sender == "Java client" and flagged


@pytest.mark.parametrize("one", ALL, ids=ids_of(ALL))
def test_a_frame_is_read_and_written_again_the_same(one: Captured) -> None:
    again = one.again()
    if not writes_its_flag_first(one):
        assert again.hex() == one.frame.hex()
        return
    header, body = fields_of(one.frame[4:])
    our_header, our_body = fields_of(again[4:])
    assert (len(again), our_header, our_body[0]) == (len(one.frame), header, body[0])
    assert isinstance(body[1], bytes)
    assert isinstance(our_body[1], bytes)
    first, *others = fields_of(body[1])
    assert fields_of(our_body[1]) == [*others, first]
    assert first[0] == 100


def test_some_frames_write_their_flag_first() -> None:
    assert sum(map(writes_its_flag_first, ALL)) >= 4


@pytest.mark.parametrize("wire", ["v2", "v3"])
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("digest_type", DigestType, ids=lambda digest_type: digest_type.name)
def test_entries_of_each_digest_are_read_and_written_again_the_same(wire: str, release: str, digest_type: DigestType) -> None:
    found = [one for one in frames(wire, release) if one.step in (f"add {digest_type.name}", f"read {digest_type.name}")]
    adds = [request for one in found if one.is_request and isinstance(request := one.request(), AddRequest)]
    reads = [response for one in found if not one.is_request and isinstance(response := one.response(), ReadResponse)]
    assert [add.body for add in adds] == [read.body for read in reads]
    payloads = []
    for add in adds:
        codec = EntryCodec(add.ledger_id, digest_type, PASSWORD)
        assert add.master_key == codec.master_key
        entry = codec.decode(add.body, add.entry_id)
        payloads.append(bytes(entry.payload))
        assert codec.encode(entry.entry_id, entry.last_add_confirmed, entry.length, entry.payload) == add.body
    assert payloads == [b"a golden entry", b""]


@pytest.mark.parametrize("release", RELEASES)
def test_an_explicit_last_add_confirmed_is_read_and_written_again_the_same(release: str) -> None:
    requests = [one.request() for one in frames("v3", release) if one.is_request]
    records = [request for request in requests if isinstance(request, WriteLacRequest)]
    assert records
    for record in records:
        codec = EntryCodec(record.ledger_id, DigestType.CRC32C, PASSWORD)
        assert codec.decode_lac(record.body) == record.lac
        assert codec.encode_lac(record.lac) == record.body


def statuses(wire: str, step: str) -> list[Status]:
    return [one.response().status for one in frames(wire, NEWEST) if one.step == step and not one.is_request]


@pytest.mark.parametrize("wire", ["v2", "v3"])
def test_the_java_bookie_s_refusals_are_understood(wire: str) -> None:
    assert statuses(wire, "fenced") == [Status.FENCED]
    assert statuses(wire, "add with another key") == [Status.UNAUTHORIZED]
    assert statuses(wire, "fencing with another key") == [Status.UNAUTHORIZED]
    assert statuses(wire, "read of no ledger") == [Status.NO_LEDGER]
    assert statuses(wire, "read of no entry") == [Status.NO_ENTRY]


def test_the_frames_show_every_operation() -> None:
    shown = {type(one.response()) for one in ALL if not one.is_request}
    assert shown == {
        AddResponse,
        AuthResponse,
        BatchReadResponse,
        BookieInfoResponse,
        ForceResponse,
        ListEntriesResponse,
        ReadLacResponse,
        ReadResponse,
        StartTlsResponse,
        WriteLacResponse,
    }
    requests = [one.request() for one in ALL if one.is_request]
    assert any(isinstance(request, BatchReadRequest) for request in requests)
    assert any(isinstance(request, AddRequest) and request.deferred_sync for request in requests)
    assert any(isinstance(request, AddRequest) and request.recovery and request.high_priority for request in requests)
    assert any(isinstance(request, ReadRequest) and request.previous_lac is not None for request in requests)
    assert any(isinstance(request, ReadRequest) and request.fence and request.high_priority for request in requests)


def test_a_list_of_entries_names_them() -> None:
    [found] = [one.response() for one in frames("v3", NEWEST) if one.step == "list of entries" and not one.is_request]
    assert isinstance(found, ListEntriesResponse)
    assert found.availability is not None
    available = decode_availability(found.availability)
    assert [entry_id for entry_id in range(200) if entry_id in available] == [0, 1]


LEDGERS = [key for key in NODES if key[1].rpartition("/")[2].startswith("L0")]


@pytest.mark.parametrize(("release", "path"), LEDGERS, ids=lambda part: part.strip("/").replace("/", "-"))
def test_ledger_metadata_is_read_and_written_again_the_same(release: str, path: str) -> None:
    data = NODES[release, path]
    metadata = decode_metadata(data)
    assert (metadata.format_version, metadata.password) == (3, PASSWORD)
    assert encode_metadata(metadata).hex() == data.hex()


def test_ledger_metadata_of_each_state_was_captured() -> None:
    found = [decode_metadata(NODES[key]) for key in LEDGERS]
    assert {metadata.state for metadata in found} == {LedgerState.OPEN, LedgerState.CLOSED}
    assert {len(metadata.segments) for metadata in found} == {1, 2}
    assert {metadata.digest_type for metadata in found} == set(DigestType)
    assert any(metadata.custom.get("bytes") == bytes(range(16)) for metadata in found)


@pytest.mark.parametrize("release", RELEASES)
def test_the_cluster_s_nodes_are_read_and_written_again_the_same(release: str) -> None:
    assert encode_layout() == NODES[release, "/LAYOUT"]
    assert decode_layout(NODES[release, "/LAYOUT"]).path(0) == "/00/0000/L0000"
    for name in ("captured", "other"):
        cookie = decode_cookie(NODES[release, f"/cookies/{name}"])
        assert (cookie.bookie_id, cookie.instance_id) == (name, NODES[release, "/INSTANCEID"].decode())
        # A bookie writes its own cookie only; ours are of layout 4, which older releases read too.
        layout, _, text = NODES[release, f"/cookies/{name}"].partition(b"\n")
        assert (layout, encode_cookie(cookie)) == (b"5", b"4\n" + text)
        registration = NODES[release, f"/available/{name}"]
        assert encode_service_info(decode_service_info(name, registration)).hex() == registration.hex()
