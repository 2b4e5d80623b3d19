"""Offsets of streams, and how a batch is limited."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplicate.errors import FormatError
from triplicate.spark.core import offsets
from triplicate.spark.core.offsets import (
    LogPosition,
    LogPositions,
    Span,
    decode_positions,
    encode_positions,
    limited_by_bytes,
)

POSITIONS = st.dictionaries(st.sampled_from("abcde"), st.tuples(st.integers(0, 2**62), st.integers(0, 10_000)), min_size=1)


def test_an_offset_is_always_the_same_text() -> None:
    a, b, c = LogPosition(1, "id-a"), LogPosition(2, "id-b"), LogPosition(7, "id-c")
    text = json.dumps(encode_positions(LogPositions({"b": b, "a": a}, {"c": c})))
    assert text == json.dumps(encode_positions(LogPositions({"a": a, "b": b}, {"c": c})))
    assert text == '{"ids": {"a": "id-a", "b": "id-b", "c": "id-c"}, "left": {"c": 7}, "logs": {"a": 1, "b": 2}, "v": 2}'
    assert decode_positions(json.loads(text)) == LogPositions({"a": a, "b": b}, {"c": c})
    assert json.dumps(encode_positions(LogPositions({"a": a}))) == '{"ids": {"a": "id-a"}, "logs": {"a": 1}, "v": 2}'


def test_an_offset_without_ids_is_still_read() -> None:
    text = '{"logs": {"a": 1, "b": 2}, "v": 1}'
    assert decode_positions(json.loads(text)) == LogPositions({"a": LogPosition(1, None), "b": LogPosition(2, None)})


@pytest.mark.parametrize(
    "offset",
    [
        {},
        {"v": 3, "logs": {}},
        {"v": 1, "logs": [1]},
        {"v": 1, "logs": {"a": "1"}},
        {"v": 2, "logs": {"a": 1}},
        {"v": 2, "logs": {"a": 1}, "ids": {"a": 7}},
        {"v": 2, "logs": {}, "ids": {}, "left": [1]},
    ],
)
def test_an_offset_of_another_kind_is_refused(offset: dict[str, object]) -> None:
    with pytest.raises(FormatError, match="versions 1 and 2 are known"):
        decode_positions(offset)


@given(POSITIONS, st.integers(1, 20_000))
def test_a_limited_batch_is_as_large_as_allowed_and_no_larger(positions: dict[str, tuple[int, int]], limit: int) -> None:
    start = {log: begin for log, (begin, _) in positions.items()}
    end = {log: begin + more for log, (begin, more) in positions.items()}
    cut = offsets.limited(start, end, limit)
    assert all(start[log] <= cut[log] <= end[log] for log in end)
    waiting = [log for log in end if start[log] < end[log]]
    assert sum(cut.values()) - sum(start.values()) == max(len(waiting), min(limit, sum(end.values()) - sum(start.values())))
    assert all(start[log] < cut[log] for log in waiting), "a small log waits for a larger one"
    assert cut == offsets.limited(dict(reversed(start.items())), dict(reversed(end.items())), limit)


def test_an_end_before_the_start_limits_nothing() -> None:
    assert offsets.limited({"a": 10, "b": 0}, {"a": 4, "b": 9}, 3) == {"a": 10, "b": 3}
    assert offsets.limited({"a": 10}, {"a": 4}, 3) == {"a": 10}


def test_bytes_are_counted_by_the_average_of_each_span() -> None:
    spans = {"a": [Span(0, 100, 1_000), Span(100, 200, 100_000)]}
    assert limited_by_bytes({"a": 0}, {"a": 200}, spans, 500) == {"a": 50}
    assert limited_by_bytes({"a": 50}, {"a": 200}, spans, 10_500) == {"a": 110}
    assert limited_by_bytes({"a": 0}, {"a": 200}, spans, 101_000) == {"a": 200}
    assert limited_by_bytes({"a": 0}, {"a": 60}, spans, 600) == {"a": 60}


def test_bytes_are_shared_in_proportion_to_what_waits() -> None:
    spans = {"a": [Span(0, 100, 3_000)], "b": [Span(0, 100, 1_000)]}
    assert limited_by_bytes({"a": 0, "b": 0}, {"a": 100, "b": 100}, spans, 400) == {"a": 10, "b": 10}


def test_one_record_of_each_log_is_delivered_however_large_it_is() -> None:
    spans = {"a": [Span(0, 10, 10_000)], "b": [Span(5, 10, 10_000)], "c": [Span(0, 10, 10)]}
    ends = {"a": 10, "b": 10, "c": 10}
    assert limited_by_bytes({"a": 0, "b": 5, "c": 9}, ends, spans, 2_000) == {"a": 1, "b": 6, "c": 10}
    assert limited_by_bytes({"a": 10, "b": 7}, {"a": 10, "b": 10}, spans, 1) == {"a": 10, "b": 8}


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 10_000)), max_size=8), st.integers(1, 20_000), st.integers(0, 100))
def test_a_batch_limited_by_bytes_always_gets_on(sizes: list[tuple[int, int]], limit: int, start: int) -> None:
    spans, first = [], 0
    for records, size in sizes:
        spans.append(Span(first, first + records, size))
        first += records
    cut = limited_by_bytes({"a": start}, {"a": first}, {"a": spans}, limit)["a"]
    assert min(start + 1, max(first, start)) <= cut <= max(first, start)
