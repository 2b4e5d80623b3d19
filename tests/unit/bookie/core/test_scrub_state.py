"""The order of a scrubber's passes, its pace, and the state that it keeps."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from triplicate.bookie.core.scrub_state import (
    DAMAGE_KEPT,
    Damage,
    ScrubPace,
    ScrubPass,
    ScrubState,
    decode_scrub_state,
    encode_scrub_state,
    promised_damage,
)
from triplicate.errors import FormatError
from triplicate.ledger import EnsembleSegment, LedgerMetadata, LedgerState


def damage(first: int, last: int) -> Damage:
    return Damage(1, first, last, 4, "its digest does not match")


def test_a_pass_reads_the_logs_that_there_are_at_its_beginning() -> None:
    state = ScrubState().begun([3, 1, 7], 1000)
    assert state.present == ScrubPass(1000, 1, 1, 7)
    read: list[int] = []
    logs = [1, 3, 7]
    while (log := state.next_log(logs)) is not None:
        read.append(log)
        state = state.with_log_read(log)
        # Written or compacted meanwhile; a log that is deleted is passed over.
        logs = [7, 8, 9 + log]
    assert read == [1, 7]
    assert state.ended(5000).last == replace(state.present or ScrubPass(0, 0, 0, 0), ended_ms=5000)


def test_an_interrupted_pass_goes_on() -> None:
    state = ScrubState().begun([1, 2, 3], 1000).with_bytes(5, 100).with_log_read(1)
    again = decode_scrub_state(encode_scrub_state(state))
    assert again == state
    assert again.begun([1, 2, 3, 4], 9000) == state
    assert again.next_log([1, 2, 3, 4]) == 2
    assert again.due_in_s(9000, 60.0) == 0


def test_a_bookie_without_entry_logs_has_nothing_to_read() -> None:
    assert ScrubState().begun([], 1000).next_log([]) is None


@pytest.mark.parametrize(("now_ms", "expected_s"), [(1000, 60.0), (31_000, 30.0), (61_000, 0.0), (999_000, 0.0), (0, 60.0)])
def test_the_next_pass_begins_an_interval_after_the_last_one(now_ms: int, expected_s: float) -> None:
    state = ScrubState().begun([1], 1000).ended(2000)
    assert state.due_in_s(now_ms, 60.0) == expected_s
    assert ScrubState().due_in_s(now_ms, 60.0) == 0


def test_damage_is_counted_and_listed_up_to_a_limit() -> None:
    state = ScrubState().begun([1], 0)
    for number in range(DAMAGE_KEPT + 5):
        state = state.with_damage([damage(10 * number, 10 * number + 1)])
    assert state.present is not None
    assert state.present.damaged == 2 * (DAMAGE_KEPT + 5)
    assert len(state.damage) == DAMAGE_KEPT
    ended = state.with_index_fault().ended(1)
    assert len(ended.damage) == DAMAGE_KEPT
    assert ended.begun([1], 2).damage == ()


def test_the_pace_keeps_both_limits() -> None:
    pace = ScrubPace(bytes_per_s=1000, share_of_time=0.1)
    assert pace.pause_s(500, 0.01) == pytest.approx(0.49)
    assert pace.pause_s(500, 0.2) == pytest.approx(1.8)
    assert pace.pause_s(0, 0.0) == 0.0
    assert ScrubPace(1000, 1.0).pause_s(500, 0.7) == pytest.approx(0.0)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"v":1}', b'{"v":1,"present":{"x":1},"last":null,"damage":[]}', b"\xff"])
def test_what_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_scrub_state(data)


def test_the_state_of_a_newer_release_is_refused() -> None:
    fields = json.loads(encode_scrub_state(ScrubState()))
    assert fields["v"] == 1
    with pytest.raises(FormatError, match="format 2"):
        decode_scrub_state(json.dumps({**fields, "v": 2}).encode())


def test_only_promised_entries_count() -> None:
    segments = (EnsembleSegment(0, ("a", "b", "c")), EnsembleSegment(10, ("a", "b", "d")))
    metadata = LedgerMetadata(3, 2, 2, segments, LedgerState.OPEN, custom={})
    spans = [(each.first, each.last) for each in promised_damage(metadata, "c", [damage(0, 20)])]
    assert spans == [(1, 2), (4, 5), (7, 8)]
    assert [(each.first, each.last) for each in promised_damage(metadata, "d", [damage(8, 9), damage(11, 11)])] == [(11, 11)]
    closed = replace(metadata, state=LedgerState.CLOSED, last_entry_id=4, length=1)
    assert [(each.first, each.last) for each in promised_damage(closed, "c", [damage(0, 20)])] == [(1, 2), (4, 4)]
