"""Heads and pages against a plain list: after any changes, no offset is lost or duplicated, and no node exceeds its limit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.examples import examples
from triplicate.config.log_settings import LogSettings
from triplicate.errors import ArgumentError, OffsetGap
from triplicate.log.core import head_changes
from triplicate.log.core.head import (
    NODE_LIMIT_BYTES,
    TEXT_LIMIT,
    Archive,
    Head,
    LogSegment,
    Owner,
    Page,
    Purpose,
    PurposeKind,
    Quorums,
    SegmentState,
    closed_segment,
    decode_head,
    decode_page,
    encode_head,
    encode_page,
)
from triplicate.log.core.head_changes import Change, all_segments, numbered, numbered_head
from triplicate.log.core.locate import EntrySearch, plan_ranges, reference_at, segment_at
from triplicate.log.core.retention import retention_offset


@dataclass
class Nodes:
    """The part of a metadata store that a log uses."""

    head: Head
    pages: dict[int, Page] = field(default_factory=dict)
    written: int = 0

    def apply(self, change: Change) -> None:
        numbers: list[int] = []
        for place in range(len(change.pages)):
            data = encode_page(numbered(change, numbers, place))
            assert len(data) <= NODE_LIMIT_BYTES
            self.pages[self.written] = decode_page(data, "l", self.written)
            numbers.append(self.written)
            self.written += 1
        data = encode_head(numbered_head(change, numbers))
        assert len(data) <= NODE_LIMIT_BYTES
        self.head = decode_head(data, "l")
        assert self.head == numbered_head(change, numbers)

    def segments(self) -> list[LogSegment]:
        return list(all_segments(self.head, self.pages))


class Model(RuleBasedStateMachine):
    """The segments as a list of (ledger, first offset, records), beside the head and its pages."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes = Nodes(head_changes.new_head("id", "t", LogSettings(), 0))
        self.model: list[tuple[int, int, int]] = []
        self.end = 0
        self.first = 0
        self.ledgers = 0
        self.epoch = 0

    def ledger(self) -> int:
        self.ledgers += 1
        return (self.ledgers * 7919) % 10_007 + 2**61

    def closed(self, records: int) -> LogSegment | None:
        segment = self.nodes.head.open
        if segment is None:
            return None
        self.end += records
        self.model[-1] = (segment.ledger_id, segment.first_offset, records)
        return closed_segment(
            segment, records=records, size_bytes=2**40, last_entry=2**40, min_time_us=self.end - records, max_time_us=self.end
        )

    def opened(self) -> LogSegment:
        segment = LogSegment(self.ledger(), self.end)
        self.model.append((segment.ledger_id, segment.first_offset, 0))
        return segment

    @initialize(count=st.integers(0, 400))
    def publish_before(self, count: int) -> None:
        self.publish(count, 1)

    @rule(records=st.integers(0, 5), next_one=st.booleans())
    def take_over(self, records: int, next_one: bool) -> None:
        closed = self.closed(records)
        self.nodes.apply(
            head_changes.take_over(self.nodes.head, closed, self.opened() if next_one else None, Owner("w" * TEXT_LIMIT, "t"), "t")
        )
        self.epoch += 1

    @precondition(lambda self: self.nodes.head.open is not None)
    @rule(records=st.integers(0, 5), times=st.integers(1, 80))
    def roll(self, records: int, times: int) -> None:
        for _ in range(times):
            closed = self.closed(records)
            assert closed is not None
            self.nodes.apply(head_changes.roll(self.nodes.head, closed, self.opened(), "t"))

    @precondition(lambda self: self.nodes.head.open is None)
    @rule(count=st.integers(0, 200), records=st.integers(1, 3))
    def publish(self, count: int, records: int) -> None:
        segments = []
        for _ in range(count):
            segments.append(LogSegment(self.ledger(), 0, records, 2**40, 2**40, 1, 2, SegmentState.CLOSED))
            self.model.append((segments[-1].ledger_id, self.end, records))
            self.end += records
        self.nodes.apply(head_changes.publish(self.nodes.head, segments, "t"))

    @rule(data=st.data())
    def truncate_and_remove(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.first, self.end))
        pages = dict(self.nodes.pages)
        self.nodes.apply(head_changes.truncate(self.nodes.head, offset, pages, "t"))
        self.first = max(self.first, offset)
        marked = frozenset(segment.ledger_id for segment in self.nodes.segments() if segment.state is SegmentState.DELETING)
        self.nodes.apply(head_changes.remove(self.nodes.head, marked, dict(self.nodes.pages), "t"))
        is_open = self.nodes.head.open is not None
        kept = [item for item in self.model if item[1] + item[2] > self.first and item[2]]
        self.model = kept + ([self.model[-1]] if is_open else [])

    @rule(data=st.data())
    def archive(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, max(0, len(self.model) - 1)))

        def edit(segment: LogSegment) -> LogSegment:
            if segment.ledger_id != self.model[number][0] or segment.state is not SegmentState.CLOSED:
                return segment
            return replace(segment, state=SegmentState.ARCHIVED, archive=Archive("f" * TEXT_LIMIT, "d" * TEXT_LIMIT))

        if self.model:
            self.nodes.apply(head_changes.rewrite(self.nodes.head, dict(self.nodes.pages), edit, lambda reference: True))

    @precondition(lambda self: any(item[2] for item in self.model))
    @rule(data=st.data())
    def replace_run(self, data: st.DataObject) -> None:
        """Neighbouring closed segments become one, in head or pages; any other change is refused."""
        closed = [item for item in self.nodes.segments() if item.state is SegmentState.CLOSED]
        if not closed:
            return
        start = data.draw(st.integers(0, len(closed) - 1))
        run = closed[start : start + data.draw(st.integers(1, 80))]
        first, end = run[0].first_offset, run[-1].end_offset
        pages = self.nodes.pages
        beneath = {
            reference.page: pages[reference.page]
            for level in ([self.nodes.head.pages], [page.references for page in pages.values()])
            for references in level
            for reference in references
            if reference.end_offset > first and reference.first_offset < end
        }
        new = LogSegment(self.ledger(), first, end - first, 1, 1, run[0].min_time_us, run[-1].max_time_us, SegmentState.CLOSED)
        between = [item for item in self.nodes.segments() if first <= item.first_offset and item.end_offset <= end]
        held = [place for place, item in enumerate(between) if item.records]
        if between[held[0] : held[-1] + 1] != run:
            # A segment in between is archived or marked for deletion, and may be empty.
            with pytest.raises(ArgumentError, match="does not list"):
                head_changes.replace_run(self.nodes.head, beneath, run, new, "t")
            return
        for wrong in (replace(new, records=new.records + 1), replace(new, first_offset=first + 1), replace(new, state=SegmentState.OPEN)):
            with pytest.raises(ArgumentError, match="is not"):
                head_changes.replace_run(self.nodes.head, beneath, run, wrong, "t")
        with pytest.raises(ArgumentError, match="does not list"):
            head_changes.replace_run(self.nodes.head, beneath, [replace(run[0], ledger_id=1), *run[1:]], new, "t")
        empty_between = head_changes.segments_within(self.nodes.head, beneath, first, end) != run
        if empty_between:
            with pytest.raises(ArgumentError, match="does not list"):
                head_changes.replace_run(self.nodes.head, beneath, run, new, "t")
            return
        self.nodes.apply(head_changes.replace_run(self.nodes.head, beneath, run, new, "t"))
        place = next(number for number, item in enumerate(self.model) if item[0] == run[0].ledger_id)
        after = next(number for number, item in enumerate(self.model) if item[0] == run[-1].ledger_id) + 1
        self.model[place:after] = [(new.ledger_id, first, end - first)]

    @invariant()
    def the_list_is_the_models(self) -> None:
        segments = self.nodes.segments()
        assert [
            (item.ledger_id, item.first_offset, item.records) for item in segments if item.records or item.state is SegmentState.OPEN
        ] == [item for item in self.model if item[2] or (self.nodes.head.open and item[0] == self.nodes.head.open.ledger_id)]
        assert all(left.end_offset == right.first_offset for left, right in pairwise(segments)), "segments continue one another without gap"
        assert self.nodes.head.closed_end == self.end
        assert self.nodes.head.first_offset == self.first
        assert self.nodes.head.epoch == self.epoch
        assert sum(reference.count for reference in self.nodes.head.pages) + len(self.nodes.head.recent) == len(
            [item for item in segments if item.state is not SegmentState.OPEN]
        )

    @invariant()
    def every_offset_is_found(self) -> None:
        segments = self.nodes.segments()
        for offset in {self.first, (self.first + self.end) // 2, self.end - 1}:
            if not self.first <= offset < self.end:
                continue
            expected = next(item for item in segments if item.first_offset <= offset < item.end_offset)
            found = segment_at(self.nodes.head.recent, offset)
            reference = reference_at(self.nodes.head.pages, offset)
            while reference is not None:
                page = self.nodes.pages[reference.page]
                if page.level == 0:
                    found = segment_at(page.segments, offset)
                    break
                reference = reference_at(page.references, offset)
            assert found == expected


Model.TestCase.settings = settings(max_examples=30, stateful_step_count=12, deadline=None)
TestHead = Model.TestCase


def test_thousands_of_segments_stay_within_the_limit_of_a_node() -> None:
    text = "x" * TEXT_LIMIT
    nodes = Nodes(head_changes.new_head("id", "t", LogSettings(), 0, Purpose(PurposeKind.DATABASE, text)))
    big = LogSegment(2**62, 0, 1, 2**62, 2**62, 2**50, 2**50, SegmentState.CLOSED, reduced=Quorums(1000, 1000))
    for _ in range(12):
        nodes.apply(head_changes.publish(nodes.head, [big] * 1000, "t" * 32))

    def archive(segment: LogSegment) -> LogSegment:
        return replace(segment, state=SegmentState.ARCHIVED, archive=Archive(text, text))

    nodes.apply(head_changes.rewrite(nodes.head, dict(nodes.pages), archive, lambda reference: True))
    assert max(reference.level for reference in nodes.head.pages) >= 1
    assert len(nodes.segments()) == 12_000
    nodes.apply(head_changes.truncate(nodes.head, 11_999, dict(nodes.pages), "t"))
    marked = frozenset([2**62])
    nodes.apply(head_changes.remove(nodes.head, marked, dict(nodes.pages), "t"))
    assert [segment.first_offset for segment in nodes.segments()] == [11_999]


@given(
    counts=st.lists(st.integers(0, 4), min_size=1, max_size=60),
    guess=st.booleans(),
    data=st.data(),
)
@settings(max_examples=examples(200), deadline=None)
def test_the_search_finds_the_entry_of_every_record(counts: list[int], guess: bool, data: st.DataObject) -> None:
    firsts = [sum(counts[:place]) for place in range(len(counts))]
    records = sum(counts)
    index = data.draw(st.integers(0, records + 2))
    search = EntrySearch(index, 0, len(counts) - 1, records if guess else 0)
    asked = 0
    while (entry := search.next_entry()) is not None:
        asked += 1
        search.record_header(entry, firsts[entry], counts[entry])
    assert asked <= len(counts).bit_length() + 1
    if index < records:
        assert firsts[search.entry] <= index < firsts[search.entry] + counts[search.entry]
    else:
        assert firsts[search.entry] + counts[search.entry] <= index


@given(
    counts=st.lists(st.integers(0, 50), min_size=1, max_size=10),
    max_records=st.integers(1, 60),
    split=st.integers(0, 10),
    data=st.data(),
)
@settings(max_examples=examples(200), deadline=None)
def test_plans_cover_the_records_once_and_do_not_change_when_segments_close(
    counts: list[int], max_records: int, split: int, data: st.DataObject
) -> None:
    segments: list[LogSegment] = []
    for place, count in enumerate(counts):
        first = sum(counts[:place])
        segments.append(LogSegment(place, first, count, state=SegmentState.CLOSED))
    total = sum(counts)
    end = data.draw(st.integers(0, total))
    start = data.draw(st.integers(0, end))
    plan = plan_ranges(segments, start, end, max_records)
    position = start
    for planned in plan:
        assert planned.first_offset == position
        assert 0 < planned.records <= max_records
        position = planned.end_offset
    assert position == end
    # The state while a later segment was still open.
    opened = [place for place, segment in enumerate(segments) if segment.end_offset >= end]
    if opened:
        before = [*segments[: opened[0]], replace(segments[opened[0]], records=0, state=SegmentState.OPEN)]
        assert plan_ranges(before, start, end, max_records) == plan
    with pytest.raises(OffsetGap):
        plan_ranges(segments, start, total + 1, max_records)


@given(
    counts=st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=8), max_records=st.integers(1, 30), data=st.data()
)
@settings(max_examples=examples(200), deadline=None)
def test_plans_that_skip_lost_records_cover_the_others_once(counts: list[tuple[int, bool]], max_records: int, data: st.DataObject) -> None:
    segments: list[LogSegment] = []
    there: list[int] = []
    for place, (count, lost) in enumerate(counts):
        first = sum(count for count, _ in counts[:place])
        segments.append(LogSegment(place, first, count, state=SegmentState.LOST if lost else SegmentState.CLOSED))
        there += [] if lost else range(first, first + count)
    end = data.draw(st.integers(0, sum(count for count, _ in counts)))
    start = data.draw(st.integers(0, end))
    planned = plan_ranges(segments, start, end, max_records, skip_lost=True)
    covered = [offset for item in planned for offset in range(item.first_offset, item.end_offset)]
    assert covered == [offset for offset in there if start <= offset < end]
    if covered != list(range(start, end)):
        with pytest.raises(OffsetGap):
            plan_ranges(segments, start, end, max_records)


def test_changes_that_do_not_continue_the_list_are_refused() -> None:
    head = head_changes.new_head("id", "t", LogSettings(), 0)
    with pytest.raises(ArgumentError, match="does not continue"):
        head_changes.take_over(head, None, LogSegment(1, 5), Owner("w", "t"), "t")
    opened = head_changes.take_over(head, None, LogSegment(1, 0), Owner("w", "t"), "t").head
    with pytest.raises(ArgumentError, match="must be closed"):
        head_changes.take_over(opened, None, LogSegment(2, 0), Owner("w", "t"), "t")
    with pytest.raises(ArgumentError, match="is open"):
        head_changes.publish(opened, [LogSegment(7, 0, 1, state=SegmentState.CLOSED)], "t")
    assert head_changes.publish(opened, [], "u").head == replace(opened, token="u")
    with pytest.raises(ArgumentError, match="still open"):
        head_changes.roll(opened, LogSegment(1, 0), None, "t")
    with pytest.raises(ArgumentError, match="no open segment"):
        head_changes.roll(head, LogSegment(1, 0), None, "t")
    with pytest.raises(ArgumentError, match="cannot be published"):
        head_changes.publish(head, [LogSegment(1, 0)], "t")


@given(
    sizes=st.lists(st.integers(1, 100), max_size=20),
    limit=st.integers(0, 300),
    age_s=st.integers(0, 20),
)
@settings(max_examples=examples(100), deadline=None)
def test_retention_keeps_the_configured_records(sizes: list[int], limit: int, age_s: int) -> None:
    segments = [
        LogSegment(place, place, 1, size, 0, place * 1_000_000, place * 1_000_000, SegmentState.CLOSED) for place, size in enumerate(sizes)
    ]
    now_us = 20_000_000
    offset = retention_offset(segments, LogSettings(retain_size_bytes=limit, retain_age_s=age_s), now_us)
    kept = [segment for segment in segments if offset is None or segment.first_offset >= offset]
    assert not limit or sum(segment.size_bytes for segment in kept) <= limit or not kept
    assert not age_s or all(segment.max_time_us >= now_us - age_s * 1_000_000 for segment in kept)
    if offset is not None:
        last = segments[offset - 1]
        rest = sum(segment.size_bytes for segment in kept) + last.size_bytes
        assert (limit and rest > limit) or (age_s and last.max_time_us < now_us - age_s * 1_000_000)


def test_ledgers_published_at_a_roll_are_between_the_two_segments() -> None:
    head = head_changes.new_head("id", "t", LogSettings(), 0)
    opened = head_changes.take_over(head, None, LogSegment(1, 0), Owner("w", "t"), "t").head
    closed = LogSegment(1, 0, 5, state=SegmentState.CLOSED)
    published = [LogSegment(7, 99, 3, state=SegmentState.CLOSED), LogSegment(8, 0, 2, state=SegmentState.CLOSED)]
    change = head_changes.roll(opened, closed, LogSegment(2, 10), "t", published=published)
    assert [(item.ledger_id, item.first_offset, item.end_offset) for item in change.head.recent] == [(1, 0, 5), (7, 5, 8), (8, 8, 10)]
    assert change.head.open == LogSegment(2, 10)
    assert sorted(change.listed) == [2, 7, 8]
    with pytest.raises(ArgumentError, match="does not continue"):
        head_changes.roll(opened, closed, LogSegment(2, 5), "t", published=published)
    with pytest.raises(ArgumentError, match="cannot be published"):
        head_changes.roll(opened, closed, LogSegment(2, 5), "t", published=[LogSegment(7, 0)])
