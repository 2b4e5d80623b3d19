"""Golden frames of version 3 with random damage: decoding gives a message or a ProtocolError, and bulk and message form agree."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.unit.wire.damage_rig import damaged
from triplicate.errors import ProtocolError
from triplicate.wire import AddRequest, AddResponse, encode_frame, scan_v3_add_responses, scan_v3_adds, v3

VECTORS = json.loads((Path(__file__).resolve().parents[2] / "golden" / "protocol.json").read_text(encoding="utf-8"))
ROUNDS = 4000


def test_damaged_frames_give_a_message_or_a_protocol_error() -> None:
    rng = random.Random(20130106)
    frames = [bytes.fromhex(text) for text in VECTORS["v3_frames"].values()]
    outcomes = {"message": 0, "refused": 0}
    for _ in range(ROUNDS):
        body = damaged(rng, rng.choice(frames)[4:])
        for decode in (v3.decode_request, v3.decode_response):
            try:
                decode(body)
                outcomes["message"] += 1
            except ProtocolError:
                outcomes["refused"] += 1
    assert min(outcomes.values()) > ROUNDS // 10


def test_damaged_adds_and_answers_read_alike_in_bulk_and_by_message() -> None:
    rng = random.Random(20130107)
    add = bytes.fromhex(VECTORS["v3_frames"]["add"])[4:]
    answer = bytes.fromhex(VECTORS["v3_frames"]["add_response_fenced"])[4:]
    in_bulk = 0
    for _ in range(ROUNDS):
        frame = encode_frame(damaged(rng, add))
        adds = scan_v3_adds(frame, 0, len(frame))
        if adds is not None:
            in_bulk += 1
            decoded = v3.decode_request(frame[4:])
            body = frame[adds.starts[0] : adds.stops[0]]
            found = AddRequest(
                adds.ledger_id, adds.entry_ids[0], adds.master_key, body, adds.recovery, adds.high_priority, adds.deferred_sync
            )
            assert (decoded.txn_id, decoded.request, decoded.refusal) == (adds.txn_ids[0], found, None)
        frame = encode_frame(damaged(rng, answer))
        answers = scan_v3_add_responses(frame, 0, len(frame))
        if answers is not None:
            in_bulk += 1
            response = AddResponse(answers.status, answers.ledger_id, answers.entry_ids[0])
            assert v3.decode_response(frame[4:]) == (answers.txn_ids[0], response)
    assert in_bulk > ROUNDS // 100
