"""The choice of segments to merge, against the conditions that hold for any choice."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.config.log_settings import LogClientSettings, LogSettings
from triplicate.log.core.head import Archive, LogSegment, Quorums, SegmentState
from triplicate.log.core.rewrite_plan import MergeLimits, merge_limits, merge_runs, reduced_runs, small_neighbours

SEGMENTS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 40),
        st.sampled_from([SegmentState.CLOSED] * 6 + [SegmentState.ARCHIVED, SegmentState.DELETING]),
        st.integers(0, 2),
        st.booleans(),
    ),
    max_size=40,
)


def made(rows: list[tuple[int, int, SegmentState, int, bool]]) -> tuple[list[LogSegment], dict[int, int]]:
    segments: list[LogSegment] = []
    first = 0
    for number, (records, size, state, _, reduced) in enumerate(rows):
        archive = Archive("f", "d") if state is SegmentState.ARCHIVED else None
        copies = Quorums(2, 2) if reduced else None
        segments.append(LogSegment(number, first, records, size, 0, number * 10, number * 10 + 9, state, archive, copies))
        first += records
    return segments, {number: row[3] // 2 for number, row in enumerate(rows)}


@settings(max_examples=examples(300), deadline=None)
@given(SEGMENTS, st.integers(1, 50), st.integers(10, 200), st.integers(0, 400), st.integers(0, 300), st.integers(2, 6), st.booleans())
def test_runs_are_neighbours_of_one_epoch_within_the_limits(
    rows: list[tuple[int, int, SegmentState, int, bool]], below: int, target: int, oldest: int, span: int, least: int, every: bool
) -> None:
    segments, epochs = made(rows)
    limits = MergeLimits(below, target, oldest, span, least, every)
    seen: list[LogSegment] = []
    for row in small_neighbours(segments, limits):
        for run in merge_runs(row, epochs, limits):
            place = segments.index(run[0])
            assert tuple(segments[place : place + len(run)]) == run, "neighbours, in order"
            assert len(run) >= least
            assert len({epochs[item.ledger_id] for item in run}) == 1
            assert all(item.state is SegmentState.CLOSED and item.records and item.archive is None for item in run)
            assert all(item.size_bytes < below and item.max_time_us <= oldest for item in run)
            sizes = [item.size_bytes for item in run]
            assert sum(sizes) <= target
            assert run[-1].max_time_us - run[0].min_time_us <= span
            assert every or 2 * max(sizes) <= sum(sizes), "a byte is written again only when what holds it doubles"
            seen += run
    assert len(seen) == len(set(seen)), "no segment is in two runs"


@given(SEGMENTS)
def test_merged_segments_are_not_merged_again(rows: list[tuple[int, int, SegmentState, int, bool]]) -> None:
    """Repeated merging ends."""
    segments, epochs = made(rows)
    limits = MergeLimits(30, 60, 2**62, 2**62, 2, False)
    for _ in range(len(segments) + 1):
        runs = [run for row in small_neighbours(segments, limits) for run in merge_runs(row, epochs, limits)]
        if not runs:
            break
        run = runs[0]
        place = segments.index(run[0])
        total = sum(item.size_bytes for item in run)
        segments[place : place + len(run)] = [
            LogSegment(run[0].ledger_id, run[0].first_offset, sum(item.records for item in run), total, 0, 0, 0, SegmentState.CLOSED)
        ]
    else:
        raise AssertionError("it never ends")
    assert all(item.size_bytes <= 60 for item in segments)


@given(SEGMENTS)
def test_reduced_segments_are_rewritten_one_by_one(rows: list[tuple[int, int, SegmentState, int, bool]]) -> None:
    segments, _ = made(rows)
    expected = [(item,) for item in segments if item.reduced and item.state is SegmentState.CLOSED]
    assert reduced_runs(segments) == expected


def test_a_merged_segment_is_small_compared_with_the_retained_log() -> None:
    client = LogClientSettings(merge_target_bytes=1000, merge_after_s=0)
    free = merge_limits(client, LogSettings(), 10**9, least=2, every=True)
    assert (free.target_bytes, free.span_us, free.oldest_us) == (1000, 2**62, 10**9)
    kept = merge_limits(client, LogSettings(retain_age_s=80, retain_size_bytes=800), 10**9, least=2, every=True)
    assert (kept.target_bytes, kept.span_us) == (100, 10_000_000)
