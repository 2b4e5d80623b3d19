"""The first bytes of an add give its ids in either version, and no bytes do harm."""

from __future__ import annotations

import random
from struct import Struct

import pytest

from triplicate.wire import (
    OVERSIZED_HEAD_BYTES,
    TOO_LARGE,
    AddRequest,
    AddResponse,
    ReadRequest,
    Request,
    WriteLacRequest,
    decode_response,
    encode_request,
    may_be_add,
    oversized_v2_add,
    oversized_v3_add,
    v3,
)

KEY = b"k" * 20
HEADER = Struct(">qqqq")
IDS = [0, 1, 127, 128, 1 << 31, (1 << 63) - 1]


def add(ledger_id: int, entry_id: int, **flags: bool) -> AddRequest:
    return AddRequest(ledger_id, entry_id, KEY, HEADER.pack(ledger_id, entry_id, entry_id - 1, 300) + bytes(300), **flags)


@pytest.mark.parametrize("ledger_id", IDS)
@pytest.mark.parametrize("entry_id", IDS)
def test_the_head_of_an_add_gives_the_answer_that_refuses_it(ledger_id: int, entry_id: int) -> None:
    for flags in ({}, {"recovery": True, "high_priority": True}):
        request = add(ledger_id, entry_id, **flags)
        found = oversized_v2_add(encode_request(request)[:OVERSIZED_HEAD_BYTES])
        assert found is not None
        assert (found.ledger_id, found.entry_id) == (ledger_id, entry_id)
        assert decode_response(found.refusal[4:]) == AddResponse(TOO_LARGE, ledger_id, entry_id)
        for txn_id in (0, 300, (1 << 64) - 1):
            found = oversized_v3_add(v3.encode_request(request, txn_id)[:OVERSIZED_HEAD_BYTES])
            assert found is not None
            assert v3.decode_response(found.refusal[4:]) == (txn_id, AddResponse(TOO_LARGE, ledger_id, entry_id))


@pytest.mark.parametrize("request_", [ReadRequest(5, 0), WriteLacRequest(5, 1, KEY, (5).to_bytes(8, "big") + (1).to_bytes(8, "big"))])
def test_what_is_no_add_gives_none(request_: Request) -> None:
    frame = (v3.encode_request(request_, 7) + bytes(OVERSIZED_HEAD_BYTES))[:OVERSIZED_HEAD_BYTES]
    assert oversized_v3_add(frame) is None
    assert oversized_v2_add(frame) is None
    assert not may_be_add(encode_request(ReadRequest(5, 0)))


def test_an_add_of_one_version_is_none_of_the_other() -> None:
    assert oversized_v3_add(encode_request(add(5, 0))[:OVERSIZED_HEAD_BYTES]) is None
    assert oversized_v2_add(v3.encode_request(add(5, 0), 1)[:OVERSIZED_HEAD_BYTES]) is None


def test_damaged_heads_give_an_add_or_none() -> None:
    entropy = random.Random(5)
    frames = [encode_request(add(5, 7)), v3.encode_request(add(5, 7, deferred_sync=True), 900), bytes(OVERSIZED_HEAD_BYTES)]
    for _ in range(20_000):
        head = bytearray(entropy.choice(frames)[:OVERSIZED_HEAD_BYTES])
        for _ in range(entropy.randint(1, 4)):
            head[entropy.randrange(4, 60)] = entropy.choice((0, 8, 10, 127, 128, 255, entropy.randrange(256)))
        for find in (oversized_v2_add, oversized_v3_add):
            found = find(bytes(head))
            assert found is None or len(found.refusal) < 200
        may_be_add(bytes(head[: entropy.randrange(12)]))
