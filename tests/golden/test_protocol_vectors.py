"""Fixed bytes of the protocol, as Apache BookKeeper's client and bookies send and store them."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from tests.entry_headers import entry_header
from triplicate.ledger import (
    DigestType,
    DigestVerifier,
    EnsembleSegment,
    EntryCodec,
    LedgerMetadata,
    decode_availability,
    decode_metadata,
    derive_master_key,
    encode_availability,
    encode_metadata,
    is_covered,
    write_set,
)
from triplicate.metadata import FlatPaths, HierarchicalPaths, LongHierarchicalPaths, underreplicated_path
from triplicate.wire import (
    AddRequest,
    AddResponse,
    AuthRequest,
    AuthResponse,
    BatchReadRequest,
    ReadRequest,
    ReadResponse,
    Request,
    Response,
    Status,
    add_prefix,
    decode_request,
    decode_response,
    encode_add_responses,
    encode_request,
    encode_response,
)

VECTORS: dict[str, Any] = json.loads(Path(__file__).with_name("protocol.json").read_text(encoding="utf-8"))
ENTRIES = VECTORS["entries"]
FRAMES: dict[str, bytes] = {name: bytes.fromhex(text) for name, text in VECTORS["v2_frames"].items()}
KEY = bytes.fromhex(VECTORS["master_keys"][0]["key"])
ENTRY = bytes.fromhex(next(entry["entry"] for entry in ENTRIES if entry["digest_type"] == "CRC32C" and entry["payload"]))
LEDGER = 12345

REQUESTS: dict[str, Request] = {
    "add": AddRequest(LEDGER, 7, KEY, ENTRY),
    "read": ReadRequest(LEDGER, 7),
    "fencing_lac_read": ReadRequest(LEDGER, -1, fence=True, master_key=KEY),
    "batch_read": BatchReadRequest(LEDGER, 0, 42, 100, 5 * 1024 * 1024),
    "auth": AuthRequest("sasl", b"\x01\x02"),
}
RESPONSES: dict[str, Response] = {
    "add_response_ok": AddResponse(Status.OK, LEDGER, 7),
    "add_response_fenced": AddResponse(Status.FENCED, LEDGER, 7),
    "read_response_ok": ReadResponse(Status.OK, LEDGER, 7, ENTRY),
    "read_response_no_entry": ReadResponse(Status.NO_ENTRY, LEDGER, 7),
    "auth": AuthResponse(Status.OK, "sasl", b"\x01\x02"),
}
HEADER_WORDS: dict[str, Request] = {
    "add": REQUESTS["add"],
    "recovery_add": AddRequest(LEDGER, 7, KEY, ENTRY, recovery=True, high_priority=True),
    "replication_add": AddRequest(LEDGER, 7, KEY, ENTRY, recovery=True),
    "read": REQUESTS["read"],
    "fencing_lac_read": REQUESTS["fencing_lac_read"],
    "recovery_read": ReadRequest(LEDGER, 7, fence=True, master_key=KEY, high_priority=True),
    "batch_read": REQUESTS["batch_read"],
}
OPEN = LedgerMetadata(
    ensemble_size=3,
    write_quorum=2,
    ack_quorum=2,
    segments=(EnsembleSegment(0, ("bk1:3181", "bk2:3181", "bk3:3181")),),
    password=b"mypassword",
    creator_token=1234567890123,
)
CLOSED = replace(OPEN.with_ensemble(5, ("bk1:3181", "bk4:3181", "bk3:3181")).closed(7, 58), creator_token=0)


def test_every_kind_of_vector_is_used() -> None:
    assert set(REQUESTS) | set(RESPONSES) == set(FRAMES)
    assert set(HEADER_WORDS) == set(VECTORS["v2_header_words"])


def test_checksums_are_the_finished_standard_ones() -> None:
    assert f"{google_crc32c.value(b'123456789'):08x}" == VECTORS["primitives"]["crc32c_123456789"]
    assert google_crc32c.extend(google_crc32c.value(b"1234"), b"56789") == google_crc32c.value(b"123456789")
    assert f"{zlib.crc32(b'123456789'):08x}" == VECTORS["primitives"]["crc32_123456789"]


@pytest.mark.parametrize("vector", VECTORS["master_keys"], ids=lambda vector: vector["password"] or "empty")
def test_master_key_is_derived_from_the_password(vector: dict[str, str]) -> None:
    assert derive_master_key(vector["password"].encode()).hex() == vector["key"]


@pytest.mark.parametrize("vector", ENTRIES, ids=lambda vector: f"{vector['digest_type']}-{vector['entry_id']}")
def test_entries_are_encoded_and_decoded(vector: dict[str, Any]) -> None:
    digest_type = DigestType[vector["digest_type"]]
    password = vector["password"].encode()
    payload = bytes.fromhex(vector["payload"])
    codec = EntryCodec(vector["ledger_id"], digest_type, password)
    body = codec.encode(vector["entry_id"], vector["last_add_confirmed"], vector["length"], payload)
    assert body.hex() == vector["entry"]
    assert body[32 : 32 + digest_type.size].hex() == vector["digest"]
    entry = codec.decode(body, vector["entry_id"])
    assert entry.payload == payload
    assert (entry.ledger_id, entry.entry_id, entry.last_add_confirmed, entry.length) == entry_header(body)
    assert DigestVerifier(digest_type, password).verify(body)


@pytest.mark.parametrize("vector", VECTORS["lac_records"], ids=lambda vector: vector["digest_type"])
def test_explicit_lac_records_are_encoded_and_decoded(vector: dict[str, Any]) -> None:
    codec = EntryCodec(vector["ledger_id"], DigestType[vector["digest_type"]], vector["password"].encode())
    assert codec.encode_lac(vector["last_add_confirmed"]).hex() == vector["record"]
    assert codec.decode_lac(bytes.fromhex(vector["record"])) == vector["last_add_confirmed"]


@pytest.mark.parametrize("name", REQUESTS)
def test_v2_requests_are_encoded_and_decoded(name: str) -> None:
    assert encode_request(REQUESTS[name]).hex() == FRAMES[name].hex()
    assert decode_request(FRAMES[name][4:]) == REQUESTS[name]


@pytest.mark.parametrize("name", RESPONSES)
def test_v2_responses_are_encoded_and_decoded(name: str) -> None:
    assert encode_response(RESPONSES[name]).hex() == FRAMES[name].hex()
    assert decode_response(FRAMES[name][4:]) == RESPONSES[name]


@pytest.mark.parametrize("name", HEADER_WORDS)
def test_v2_header_words_carry_the_flags(name: str) -> None:
    assert encode_request(HEADER_WORDS[name])[4:8].hex() == VECTORS["v2_header_words"][name]


def test_bulk_forms_give_the_same_bytes() -> None:
    assert add_prefix(len(ENTRY), 0, KEY) + ENTRY == FRAMES["add"]
    assert encode_add_responses(LEDGER, [7]) == FRAMES["add_response_ok"]
    assert encode_add_responses(LEDGER, [7], Status.FENCED) == FRAMES["add_response_fenced"]


@pytest.mark.parametrize(("name", "metadata"), [("open", OPEN), ("closed", CLOSED)])
def test_metadata_of_version_3_is_encoded_and_decoded(name: str, metadata: LedgerMetadata) -> None:
    assert encode_metadata(metadata).hex() == VECTORS["metadata"][name]
    assert decode_metadata(bytes.fromhex(VECTORS["metadata"][name])) == metadata


def test_fields_of_a_later_release_are_written_back() -> None:
    vector = VECTORS["metadata_of_a_later_release"]
    metadata = decode_metadata(bytes.fromhex(vector["open"]))
    assert encode_metadata(metadata).hex() == vector["open"]
    assert encode_metadata(metadata.recovering().closed(7, 58)).hex() == vector["closed"]


@pytest.mark.parametrize("vector", VECTORS["ledger_paths"], ids=lambda vector: str(vector["ledger_id"]))
def test_a_ledger_is_where_bookkeeper_looks_for_it(vector: dict[str, Any]) -> None:
    ledger_id = vector["ledger_id"]
    for paths in (HierarchicalPaths(), LongHierarchicalPaths(), FlatPaths()):
        assert paths.path(ledger_id) == vector[paths.manager]
    assert underreplicated_path(ledger_id) == vector["underreplicated"]


def test_list_of_entries_is_encoded_and_decoded() -> None:
    assert encode_availability([range(10)]).hex() == VECTORS["availability_0_to_9"]
    assert list(decode_availability(bytes.fromhex(VECTORS["availability_0_to_9"])).runs()) == [range(10)]


def test_write_sets_stripe_over_the_ensemble() -> None:
    vector = VECTORS["write_sets"]
    for entry_id, expected in enumerate(vector["sets"]):
        assert write_set(entry_id, vector["ensemble_size"], vector["write_quorum"]) == tuple(expected)


def test_coverage_is_counted_in_every_write_quorum() -> None:
    vector = VECTORS["coverage"]
    for case in vector["cases"]:
        covered = is_covered(case["unknown"], vector["ensemble_size"], vector["write_quorum"], vector["ack_quorum"])
        assert covered is case["covered"], case
