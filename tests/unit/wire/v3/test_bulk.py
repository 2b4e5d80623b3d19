from __future__ import annotations

import pytest

from triplicate.errors import ArgumentError
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import (
    ADD_HEAD_BYTES,
    AddRequest,
    ReadRequest,
    Status,
    V3AddEncoder,
    encode_v3_add_responses,
    scan_v3_add_responses,
    scan_v3_adds,
    v3,
)

KEY = bytes(range(20))


def entry(ledger_id: int, entry_id: int, confirmed: int = -1, payload: bytes = b"abc") -> bytes:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"").encode(entry_id, confirmed, 3, payload)


def add(
    entry_id: int,
    txn_id: int,
    confirmed: int = -1,
    payload: bytes = b"abc",
    *,
    ledger_id: int = 5,
    key: bytes = KEY,
    recovery: bool = False,
) -> bytes:
    return V3AddEncoder(ledger_id, key, recovery=recovery).encode(entry_id, txn_id, entry(ledger_id, entry_id, confirmed, payload))


def test_a_run_holds_consecutive_adds_of_one_ledger() -> None:
    # Payloads of these sizes take lengths of one, two and three bytes.
    frames = [add(7, 70, 3), add(8, 90, 6, b"x" * 200), add(9, 71, 5, b"y" * 20_000), add(10, 72, payload=b"")]
    buffer = b"skip" + b"".join(frames) + add(0, 73, ledger_id=6)
    run = scan_v3_adds(buffer, 4, len(buffer))
    assert run is not None
    assert (run.ledger_id, run.master_key, run.recovery, run.high_priority, run.deferred_sync) == (5, KEY, False, False, False)
    assert (run.entry_ids, run.txn_ids, run.last_add_confirmed) == ([7, 8, 9, 10], [70, 90, 71, 72], 6)
    assert run.end == 4 + sum(map(len, frames))
    found = [buffer[start:stop] for start, stop in zip(run.starts, run.stops, strict=True)]
    assert found == [entry(5, 7, 3), entry(5, 8, 6, b"x" * 200), entry(5, 9, 5, b"y" * 20_000), entry(5, 10, payload=b"")]
    journal, v2_run = run.as_v2(buffer)
    assert [journal[start + ADD_HEAD_BYTES : stop] for start, stop in zip(v2_run.offsets, v2_run.offsets[1:], strict=False)] == found


@pytest.mark.parametrize(
    "other",
    [
        add(8, 71, ledger_id=6),
        add(8, 71, key=bytes(20)),
        add(8, 71, recovery=True),
        V3AddEncoder(5, KEY, priority=100).encode(8, 71, entry(5, 8)),
        V3AddEncoder(5, KEY).encode(8, 71, entry(5, 9)),
        V3AddEncoder(5, KEY).encode(8, 71, entry(6, 8)),
        add(8, 128),
        add(128, 71),
        v3.encode_request(ReadRequest(5, 8), 71),
        add(8, 71)[:-1],
        b"\x00\x00",
        b"",
    ],
    ids=[
        "ledger", "key", "flags", "priority", "entry inside", "ledger inside", "wider transaction", "wider entry", "read", "incomplete",
        "incomplete length", "end",
    ],
)  # fmt: skip
def test_a_run_ends_where_something_else_begins(other: bytes) -> None:
    buffer = add(7, 70) + other
    run = scan_v3_adds(buffer, 0, len(buffer))
    assert run is not None
    assert (run.entry_ids, run.txn_ids, run.end) == ([7], [70], len(add(7, 70)))


@pytest.mark.parametrize(
    "buffer",
    [
        V3AddEncoder(-5, KEY).encode(7, 70, entry(-5, 7)),
        add(-7, 70),
        add(7, 2**63),
        V3AddEncoder(5, KEY).encode(7, 70, entry(5, 8)),
        V3AddEncoder(5, KEY).encode(7, 70, entry(5, 7)[:31]),
        add(7, 70)[:-1],
        add(7, 70)[:3],
        v3.encode_request(ReadRequest(5, 7), 70) + add(7, 70),
        b"",
    ],
    ids=["ledger", "entry", "transaction", "entry inside", "short", "incomplete", "incomplete length", "read", "end"],
)
def test_what_is_left_to_the_message_form_gives_no_run(buffer: bytes) -> None:
    assert scan_v3_adds(buffer, 0, len(buffer)) is None


def test_a_frame_over_the_limit_gives_no_run_and_ends_one() -> None:
    small, large = add(7, 70), add(8, 71, payload=b"abcd")
    run = scan_v3_adds(small + large, 0, len(small + large), len(small))
    assert run is not None
    assert run.entry_ids == [7]
    assert scan_v3_adds(large, 0, len(large), len(small)) is None


def test_the_end_given_counts_not_the_buffers() -> None:
    buffer = add(7, 70) + add(8, 71)
    for cut in range(1, len(add(8, 71)) + 1):
        run = scan_v3_adds(buffer, 0, len(buffer) - cut)
        assert run is not None
        assert run.entry_ids == [7]
    answers = encode_v3_add_responses(5, [7, 8], [70, 71])
    found = scan_v3_add_responses(answers, 0, len(answers) - 1)
    assert found is not None
    assert found.entry_ids == [7]
    assert scan_v3_add_responses(answers, 0, 20) is None


def test_flags_of_a_run_are_named() -> None:
    for recovery in (False, True):
        for deferred_sync in (False, True):
            for priority in (None, 0, 100, 2**32 - 1):
                encoder = V3AddEncoder(5, KEY, recovery=recovery, deferred_sync=deferred_sync, priority=priority)
                frame = encoder.encode(7, 70, entry(5, 7))
                run = scan_v3_adds(frame, 0, len(frame))
                assert run is not None
                assert (run.recovery, run.deferred_sync, run.high_priority) == (recovery, deferred_sync, bool(priority))
                _journal, v2_run = run.as_v2(frame)
                assert (v2_run.recovery, v2_run.high_priority) == (recovery, bool(priority))


def test_answers_of_one_ledger_and_status_are_one_run() -> None:
    frames = encode_v3_add_responses(5, [1, 2, 127], [9, 8, 7])
    buffer = b"skip" + frames + encode_v3_add_responses(5, [3], [6], Status.FENCED)
    run = scan_v3_add_responses(buffer, 4, len(buffer))
    assert run is not None
    assert (run.status, run.ledger_id, run.entry_ids, run.txn_ids) == (Status.OK, 5, [1, 2, 127], [9, 8, 7])
    assert run.end == 4 + len(frames)
    run = scan_v3_add_responses(buffer, run.end, len(buffer))
    assert run is not None
    assert (run.status, run.entry_ids, run.end) == (Status.FENCED, [3], len(buffer))
    assert scan_v3_add_responses(buffer, run.end, len(buffer)) is None


def test_no_answers_are_no_bytes() -> None:
    assert encode_v3_add_responses(5, [], []) == b""


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ArgumentError, match="master_key has 19 bytes"):
        V3AddEncoder(5, KEY[1:])
    with pytest.raises(ArgumentError, match="priority 4294967296"):
        V3AddEncoder(5, KEY, priority=2**32)
    with pytest.raises(ArgumentError, match="64 bits with a sign"):
        V3AddEncoder(2**63, KEY)
    with pytest.raises(ArgumentError, match="64 bits with a sign"):
        V3AddEncoder(5, KEY).encode(2**63, 1, b"")
    with pytest.raises(ArgumentError, match="64 bits with a sign"):
        encode_v3_add_responses(5, [-(2**63) - 1], [1])
    for txn_id in (-1, 2**64):
        with pytest.raises(ArgumentError, match="txn_id"):
            V3AddEncoder(5, KEY).encode(7, txn_id, b"")
        with pytest.raises(ArgumentError, match="txn_id"):
            encode_v3_add_responses(5, [7], [txn_id])


def test_negative_ids_are_written_as_the_message_form_writes_them() -> None:
    frame = V3AddEncoder(-5, KEY).encode(-7, 70, entry(-5, -7))
    assert frame == v3.encode_request(AddRequest(-5, -7, KEY, entry(-5, -7)), 70)


@pytest.mark.parametrize(("recovery", "priority"), [(False, None), (True, 100)])
def test_one_encoder_writes_entries_of_all_sizes_and_numbers(recovery: bool, priority: int | None) -> None:
    encoder = V3AddEncoder(5, KEY, recovery=recovery, priority=priority)
    numbers = [1, 2, 127, 128, 129, 16383, 16384, 1 << 21, 1 << 35, (1 << 63) - 1]
    for size in (0, 1, 90, 127, 128, 16384, 3, 3):
        for entry_id in numbers:
            for txn_id in (1, 127, 128, 1 << 40, (1 << 64) - 1):
                body = entry(5, entry_id, payload=bytes(size))
                request = AddRequest(5, entry_id, KEY, body, recovery=recovery)
                frame = encoder.encode(entry_id, txn_id, body)
                assert frame == v3.encode_request(request, txn_id, priority)
                assert frame == encoder.head(entry_id, txn_id, len(body)) + body + encoder.tail
