"""Fixed bytes of protocol version 3, as Apache BookKeeper's client and bookies send them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from triplicate.wire import (
    AddRequest,
    AddResponse,
    BookieInfoRequest,
    ReadLacRequest,
    ReadRequest,
    ReadResponse,
    Request,
    Response,
    Status,
    V3AddEncoder,
    WriteLacRequest,
    decode_request,
    encode_v3_add_responses,
    is_v3,
    scan_v3_add_responses,
    scan_v3_adds,
    v3,
)

VECTORS: dict[str, Any] = json.loads(Path(__file__).with_name("protocol.json").read_text(encoding="utf-8"))
FRAMES: dict[str, bytes] = {name: bytes.fromhex(text) for name, text in VECTORS["v3_frames"].items()}
KEY = bytes.fromhex(VECTORS["master_keys"][0]["key"])
ENTRY = bytes.fromhex(next(one["entry"] for one in VECTORS["entries"] if one["digest_type"] == "CRC32C" and one["payload"]))
LAC_RECORD = bytes.fromhex(next(one["record"] for one in VECTORS["lac_records"] if one["digest_type"] == "CRC32C"))
LEDGER = 12345

REQUESTS: dict[str, tuple[int, Request]] = {
    "add": (1, AddRequest(LEDGER, 7, KEY, ENTRY)),
    "read": (3, ReadRequest(LEDGER, 7)),
    "fencing_lac_read": (4, ReadRequest(LEDGER, -1, fence=True, master_key=KEY)),
    "recovery_read": (5, ReadRequest(LEDGER, 7, fence=True, master_key=KEY, high_priority=True)),
    "long_poll": (6, ReadRequest(LEDGER, -1, previous_lac=6, timeout_ms=1000, piggyback=True)),
    "read_lac": (7, ReadLacRequest(LEDGER)),
    "write_lac": (8, WriteLacRequest(LEDGER, 6, KEY, LAC_RECORD)),
    "bookie_info": (9, BookieInfoRequest()),
}
RESPONSES: dict[str, tuple[int, Response]] = {
    "add_response_ok": (1, AddResponse(Status.OK, LEDGER, 7)),
    "add_response_fenced": (1, AddResponse(Status.FENCED, LEDGER, 7)),
    "read_response_no_entry": (3, ReadResponse(Status.NO_ENTRY, LEDGER, 7)),
}


def test_every_vector_is_used() -> None:
    assert set(REQUESTS) | set(RESPONSES) == set(FRAMES)


@pytest.mark.parametrize("name", REQUESTS)
def test_v3_requests_are_encoded_and_decoded(name: str) -> None:
    txn_id, request = REQUESTS[name]
    assert v3.encode_request(request, txn_id).hex() == FRAMES[name].hex()
    decoded = v3.decode_request(FRAMES[name][4:])
    assert (decoded.txn_id, decoded.request, decoded.refusal) == (txn_id, request, None)


@pytest.mark.parametrize("name", RESPONSES)
def test_v3_responses_are_encoded_and_decoded(name: str) -> None:
    txn_id, response = RESPONSES[name]
    assert v3.encode_response(response, txn_id).hex() == FRAMES[name].hex()
    assert v3.decode_response(FRAMES[name][4:]) == (txn_id, response)


def test_bulk_forms_give_the_same_bytes() -> None:
    assert V3AddEncoder(LEDGER, KEY).encode(7, 1, ENTRY) == FRAMES["add"]
    assert encode_v3_add_responses(LEDGER, [7], [1]) == FRAMES["add_response_ok"]
    assert encode_v3_add_responses(LEDGER, [7], [1], Status.FENCED) == FRAMES["add_response_fenced"]


def test_bulk_forms_read_the_same_bytes() -> None:
    adds = scan_v3_adds(FRAMES["add"], 0, len(FRAMES["add"]))
    assert adds is not None
    assert (adds.ledger_id, adds.entry_ids, adds.txn_ids, adds.end) == (LEDGER, [7], [1], len(FRAMES["add"]))
    v2_frames, v2_run = adds.as_v2(FRAMES["add"])
    assert v2_frames.hex() == VECTORS["v2_frames"]["add"]
    assert decode_request(v2_frames[4:]) == REQUESTS["add"][1]
    assert v2_run.entry_ids == [7]
    for name in ("add_response_ok", "add_response_fenced"):
        answers = scan_v3_add_responses(FRAMES[name], 0, len(FRAMES[name]))
        assert answers is not None
        assert (answers.txn_ids[0], AddResponse(answers.status, answers.ledger_id, answers.entry_ids[0])) == RESPONSES[name]


def test_the_first_byte_distinguishes_the_versions() -> None:
    assert all(is_v3(frame[4:]) for frame in FRAMES.values())
    assert not any(is_v3(bytes.fromhex(text)[4:]) for text in VECTORS["v2_frames"].values())
