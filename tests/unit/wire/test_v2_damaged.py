"""Golden frames with random damage: decoding gives a message or a ProtocolError, and bulk and message form agree."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.unit.wire.damage_rig import damaged
from triplicate.errors import DigestMismatch, FormatError, ProtocolError
from triplicate.ledger import DigestType, EntryCodec, decode_availability, decode_metadata, encode_metadata
from triplicate.wire import FrameBuffer, decode_request, decode_response

VECTORS = json.loads((Path(__file__).resolve().parents[2] / "golden" / "protocol.json").read_text(encoding="utf-8"))
ROUNDS = 4000


def test_damaged_frames_give_a_message_or_a_protocol_error() -> None:
    rng = random.Random(20130101)
    frames = [bytes.fromhex(text) for text in VECTORS["v2_frames"].values()]
    outcomes = {"message": 0, "refused": 0}
    for _ in range(ROUNDS):
        body = damaged(rng, rng.choice(frames)[4:])
        for decode in (decode_request, decode_response):
            try:
                decode(body)
                outcomes["message"] += 1
            except ProtocolError:
                outcomes["refused"] += 1
    assert min(outcomes.values()) > ROUNDS // 10


def test_damaged_streams_give_bodies_or_a_protocol_error() -> None:
    rng = random.Random(20130102)
    stream = b"".join(bytes.fromhex(text) for text in VECTORS["v2_frames"].values())
    for _ in range(ROUNDS // 10):
        frames = FrameBuffer(max_frame_bytes=400)
        data = damaged(rng, stream)
        try:
            for start in range(0, len(data), 50):
                frames.bodies(data[start : start + 50])
                assert frames.held_bytes <= 400
        except ProtocolError:
            continue


def test_damaged_entries_are_refused() -> None:
    rng = random.Random(20130103)
    for vector in VECTORS["entries"]:
        if vector["digest_type"] == "DUMMY":
            continue
        codec = EntryCodec(vector["ledger_id"], DigestType[vector["digest_type"]], vector["password"].encode())
        whole = bytes.fromhex(vector["entry"])
        for _ in range(ROUNDS // 10):
            body = damaged(rng, whole)
            if body == whole:
                continue
            try:
                codec.decode(body, vector["entry_id"])
            except DigestMismatch:
                continue
            raise AssertionError(f"{body.hex()} passed for {whole.hex()}")


def test_damaged_metadata_is_refused_or_can_be_written_again() -> None:
    rng = random.Random(20130104)
    for text in VECTORS["metadata"].values():
        for _ in range(ROUNDS // 4):
            try:
                metadata = decode_metadata(damaged(rng, bytes.fromhex(text)))
            except FormatError:
                continue
            assert decode_metadata(encode_metadata(metadata)) == metadata


def test_damaged_lists_of_entries_are_refused_or_bounded() -> None:
    rng = random.Random(20130105)
    whole = bytes.fromhex(VECTORS["availability_0_to_9"])
    for _ in range(ROUNDS // 4):
        try:
            found = decode_availability(damaged(rng, whole))
        except ProtocolError:
            continue
        assert found.count >= len(found.groups)
