from __future__ import annotations

import pytest

from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import (
    ADD_HEAD_BYTES,
    FLAG_HIGH_PRIORITY,
    FLAG_RECOVERY_ADD,
    AddAnswerRun,
    AddResponse,
    ReadRequest,
    ReadResponse,
    Status,
    add_prefix,
    encode_add_responses,
    encode_request,
    encode_response,
    gather_add_responses,
    scan_add_responses,
    scan_adds,
)

KEY = bytes(range(20))


def add(ledger_id: int, entry_id: int, last_add_confirmed: int = -1, flags: int = 0, key: bytes = KEY, payload: bytes = b"abc") -> bytes:
    entry = EntryCodec(ledger_id, DigestType.CRC32C, b"").encode(entry_id, last_add_confirmed, 3, payload)
    return add_prefix(len(entry), flags, key) + entry


def test_a_run_holds_consecutive_adds_of_one_ledger() -> None:
    frames = [add(5, 7, 3), add(5, 8, 6, payload=b""), add(5, 9, 5, payload=b"x" * 200)]
    buffer = b"skip" + b"".join(frames) + add(6, 0)
    run = scan_adds(buffer, 4, len(buffer))
    assert run is not None
    assert (run.ledger_id, run.master_key, run.recovery, run.high_priority) == (5, KEY, False, False)
    assert run.entry_ids == [7, 8, 9]
    assert run.last_add_confirmed == 6
    assert [buffer[start:stop] for start, stop in zip(run.offsets, run.offsets[1:], strict=False)] == frames
    assert EntryCodec(5, DigestType.CRC32C, b"").decode(buffer[run.offsets[0] + ADD_HEAD_BYTES : run.offsets[1]], 7).payload == b"abc"


@pytest.mark.parametrize(
    "other",
    [
        add(6, 8),
        add(5, 8, flags=FLAG_RECOVERY_ADD),
        add(5, 8, key=bytes(20)),
        add(5, -1),
        encode_request(ReadRequest(5, 8)),
        add(5, 8)[:-1],
        b"\x00\x00",
        b"",
    ],
    ids=["ledger", "flags", "key", "negative id", "read", "incomplete", "incomplete length", "end"],
)
def test_a_run_ends_where_something_else_begins(other: bytes) -> None:
    buffer = add(5, 7) + other
    run = scan_adds(buffer, 0, len(buffer))
    assert run is not None
    assert run.entry_ids == [7]
    assert run.offsets == [0, len(add(5, 7))]


def test_flags_of_a_run_are_named() -> None:
    for flags in (0, FLAG_RECOVERY_ADD, FLAG_HIGH_PRIORITY, FLAG_RECOVERY_ADD | FLAG_HIGH_PRIORITY):
        run = scan_adds(add(5, 7, flags=flags), 0, len(add(5, 7)))
        assert run is not None
        assert (run.recovery, run.high_priority) == (bool(flags & FLAG_RECOVERY_ADD), bool(flags & FLAG_HIGH_PRIORITY))


@pytest.mark.parametrize(
    "buffer",
    [add(-5, 7), add(5, -7), add(5, 7)[:-1], encode_request(ReadRequest(5, 7)) + add(5, 7), b"\x01" + add(5, 7)[1:], add(5, 7)[:3]],
    ids=["ledger", "entry", "incomplete", "read", "length", "short"],
)
def test_what_is_no_whole_add_gives_no_run(buffer: bytes) -> None:
    assert scan_adds(buffer, 0, len(buffer)) is None


def test_an_add_too_short_for_an_entry_gives_no_run() -> None:
    frame = add_prefix(31, 0, KEY) + bytes(31)
    assert scan_adds(frame + bytes(40), 0, len(frame) + 40) is None


def test_the_end_given_counts_not_the_buffers() -> None:
    buffer = add(5, 7) + add(5, 8)
    run = scan_adds(buffer, 0, len(buffer) - 1)
    assert run is not None
    assert run.entry_ids == [7]


def test_an_add_over_the_frame_limit_gives_no_run() -> None:
    frame = add(5, 7)
    assert scan_adds(frame, 0, len(frame), max_frame_bytes=len(frame)) is not None
    assert scan_adds(frame, 0, len(frame), max_frame_bytes=len(frame) - 1) is None


def test_answers_are_written_as_one_piece() -> None:
    assert encode_add_responses(5, []) == b""
    expected = b"".join(encode_response(AddResponse(Status.FENCED, 5, entry_id)) for entry_id in (9, 2, 7))
    assert encode_add_responses(5, [9, 2, 7], Status.FENCED) == expected
    assert encode_add_responses(5, [9], Status.UNKNOWN_LEDGER_STATE) == encode_add_responses(5, [9], Status.IO_ERROR)


def test_answers_are_read_by_ledger_and_status() -> None:
    buffer = encode_add_responses(5, [1, 2, 3]) + encode_add_responses(5, [4], Status.FENCED) + encode_add_responses(6, [0, 1])
    found = []
    position = 0
    while (run := scan_add_responses(buffer, position, len(buffer))) is not None:
        found.append(run)
        position = run.end
    assert found == [
        AddAnswerRun(Status.OK, 5, [1, 2, 3], 84),
        AddAnswerRun(Status.FENCED, 5, [4], 112),
        AddAnswerRun(Status.OK, 6, [0, 1], 168),
    ]


def test_answers_of_other_kinds_end_a_run() -> None:
    read = encode_response(ReadResponse(Status.NO_ENTRY, 5, 2))
    assert len(read) == 28
    buffer = encode_add_responses(5, [1]) + read + encode_add_responses(5, [3])
    run = scan_add_responses(buffer, 0, len(buffer))
    assert run == AddAnswerRun(Status.OK, 5, [1], 28)
    assert scan_add_responses(buffer, 28, len(buffer)) is None
    assert scan_add_responses(buffer, 56, len(buffer)) == AddAnswerRun(Status.OK, 5, [3], 84)
    for size in range(28):
        assert scan_add_responses(buffer, 0, size) is None


def test_good_answers_of_several_ledgers_in_turn_are_sorted_up_to_the_first_other_frame() -> None:
    answers = [(5, 1), (6, 1), (5, 2), (7, 9), (5, 3), (7, 10)]
    good = b"".join(encode_add_responses(ledger_id, [entry_id]) for ledger_id, entry_id in answers)
    others = (
        encode_add_responses(5, [4], Status.FENCED),
        encode_response(ReadResponse(Status.OK, 5, 4, b"x" * 40)),
        encode_add_responses(5, [4])[:27],
        b"",
    )
    for other in others:
        buffer = b"skip" + good + other
        gathered: dict[int, int | list[int]] = {6: 0, 8: [1]}
        assert gather_add_responses(buffer, 4, len(buffer), gathered) == 4 + len(good)
        assert gathered == {5: [1, 2, 3], 6: [0, 1], 7: [9, 10], 8: [1]}
    nothing: dict[int, int | list[int]] = {}
    assert gather_add_responses(others[0], 0, len(others[0]), nothing) == 0
    assert gather_add_responses(good, 0, len(good), nothing) == len(good)
    assert nothing == {5: [1, 2, 3], 6: 1, 7: [9, 10]}
