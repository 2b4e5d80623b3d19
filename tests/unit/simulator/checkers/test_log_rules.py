"""The judges of logs, held to histories written by hand: those that must pass, and those that must not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from triplicate_simulator.checkers.history import History, judge
from triplicate_simulator.checkers.log_rules import (
    LOG_CHECKERS,
    BatchPublished,
    BatchRefused,
    BatchStaged,
    EndRead,
    FinalLogRead,
    ListedSegment,
    LogAcknowledged,
    LogAcquired,
    LogRead,
    LogReadable,
    LogSubmitted,
    ReadingBegan,
    ReadingEnded,
    ReadingRefused,
    RetentionSet,
    SegmentsListed,
    TruncationRequested,
)


def offered(time_s: float, writer: str, epoch: int, *records: bytes) -> LogSubmitted:
    return LogSubmitted(time_s, "l", writer, epoch, records)


def acknowledged(time_s: float, writer: str, epoch: int, offset: int, *records: bytes) -> LogAcknowledged:
    return LogAcknowledged(time_s, "l", writer, epoch, offset, records)


def read(reader: str, offset: int, *records: bytes, epoch: int = 1, ledger: int = 10, wall: int = 0, time_s: float = 9.0) -> LogRead:
    return LogRead(time_s, "l", reader, offset, records, ledger, epoch, wall)


def taken(time_s: float, writer: str, epoch: int, offset: int) -> LogAcquired:
    return LogAcquired(time_s, "l", writer, epoch, offset)


def began(reader: str, offset: int) -> ReadingBegan:
    return ReadingBegan(8.0, "l", reader, offset)


GOOD: list[object] = [
    taken(1.0, "w1", 1, 0),
    offered(1.1, "w1", 1, b"a"),
    offered(1.2, "w1", 1, b"b", b"c"),
    acknowledged(1.3, "w1", 1, 0, b"a"),
    # b and c never had an answer: b is there all the same, and c is not.
    offered(1.4, "w1", 1, b"x"),
    taken(2.0, "w2", 2, 2),
    EndRead(2.0, 2.1, "l", "p", 1),
    offered(2.1, "w2", 2, b"d"),
    acknowledged(2.2, "w2", 2, 2, b"d"),
    LogReadable(2.3, "l", 3),
    offered(2.4, "w1", 1, b"y"),
    EndRead(2.4, 2.5, "l", "p", 3),
    BatchStaged(3.0, "l", "app", 0, "one", ((b"e", b"f"), (b"g",))),
    BatchStaged(3.1, "l", "app", 0, "two", ((b"E",), ())),
    BatchPublished(3.2, "l", "app", 0, "one", 3, 6, False),
    BatchPublished(3.3, "l", "app", 0, "two", 3, 6, True),
    BatchStaged(4.0, "l", "app", 1, "three", ((b"h",),)),
    BatchPublished(4.1, "l", "app", 0, "two", -1, -1, True),
    began("t", 0),
    read("t", 0, b"a", wall=5),
    read("t", 1, b"b", wall=6),
    began("u", 1),
    read("u", 1, b"b", wall=6),
    began("final", 0),
    read("final", 0, b"a", wall=5),
    read("final", 1, b"b", wall=6),
    read("final", 2, b"d", epoch=2, ledger=11, wall=6),
    read("final", 3, b"e", b"f", epoch=0, ledger=12, wall=2),
    read("final", 5, b"g", epoch=0, ledger=13, wall=1),
    read("final", 6, b"h", epoch=0, ledger=14, wall=3),
    ReadingEnded(9.0, "l", "final", 7),
    FinalLogRead(9.0, "l", "final", 0, 7),
]


def judged(events: Sequence[object]) -> dict[str, list[str]]:
    """Violations by checker; those that found none are left out."""
    history = History()
    for event in events:
        history.add(event)
    return {verdict.checker: verdict.violations for verdict in judge(history, LOG_CHECKERS) if verdict.violations}


def changed(old: object, *new: object) -> list[object]:
    """The good history with one event replaced."""
    place = GOOD.index(old)
    return [*GOOD[:place], *new, *GOOD[place + 1 :]]


def expect(events: Sequence[object], checker: str, *patterns: str) -> None:
    found = judged(events)
    assert checker in found, found
    for pattern in patterns:
        assert any(re.search(pattern, violation) for violation in found[checker]), found[checker]


def test_a_good_history_passes_and_every_checker_decides_something() -> None:
    history = History()
    for event in GOOD:
        history.add(event)
    for verdict in judge(history, LOG_CHECKERS):
        assert verdict.violations == []
        assert verdict.decided > 0, verdict.checker


def test_an_empty_history_passes() -> None:
    assert judged([]) == {}


# One record at one offset.


def test_two_readers_with_different_records_at_one_offset() -> None:
    expect(changed(GOOD[22], read("u", 1, b"x", wall=6)), "one_record_at_one_offset", "offset 1 of l: t has b'b', u has b'x'")


def test_a_record_that_is_there_twice() -> None:
    events = [*GOOD[:-2], read("final", 7, b"a", epoch=2, ledger=15, wall=6), ReadingEnded(9.0, "l", "final", 8), GOOD[-1]]
    expect(events, "one_record_at_one_offset", "b'a' of l is there twice: t has it at 0, final at 7")


def test_a_record_that_nobody_wrote() -> None:
    expect([*GOOD, began("v", 1), read("v", 1, b"forged")], "one_record_at_one_offset", "which was never written")


def test_a_record_of_another_log_is_one_that_nobody_wrote() -> None:
    other = [ReadingBegan(8.0, "m", "t", 0), replace(read("t", 0, b"a"), log="m")]
    expect([*GOOD, *other], "one_record_at_one_offset", "offset 0 of m: t has b'a', which was never written")


# Readers miss nothing.


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([began("v", 0), read("v", 1, b"b", wall=6)], "v of l was given offset 1 at 9.000000 where 0 was next"),
        ([began("v", 0), read("v", 0, b"a", wall=5), read("v", 0, b"a", wall=5)], "given offset 0 at 9.000000 where 1 was next"),
        ([read("v", 0, b"a", wall=5)], "where None was next"),
        ([began("v", 0), read("v", 0, b"a", wall=5), ReadingEnded(9.0, "l", "v", 2)], "says it has read up to 2, was given up to 1"),
        ([ReadingRefused(9.0, "l", "v", "OffsetGap: no")], "v of l was refused at 9.000000: OffsetGap: no"),
    ],
)
def test_a_reader_that_misses_or_repeats(events: list[object], message: str) -> None:
    expect([*GOOD, *events], "readers_miss_nothing", re.escape(message))


# Acknowledged records stay.


def test_an_acknowledged_record_that_is_lost() -> None:
    events = [event for event in GOOD if not (isinstance(event, LogRead) and event.records == (b"d",))]
    expect(events, "acknowledged_records_stay", "b'd' was acknowledged to w2 at 2.200000 as offset 2 of l and is lost: the log ends at 7")


def test_an_acknowledged_record_with_another_in_its_place() -> None:
    expect([*GOOD, acknowledged(2.5, "w2", 2, 1, b"z")], "acknowledged_records_stay", "b'z' .* offset 1 of l, where readers have b'b'")


def test_one_offset_acknowledged_twice() -> None:
    expect([*GOOD, acknowledged(2.5, "w2", 2, 2, b"z")], "acknowledged_records_stay", "as offset 2 of l, and so was b'd'")


def test_what_nobody_wanted_truncated_is_there() -> None:
    cut = [event for event in GOOD if not (isinstance(event, LogRead) and event.reader == "final" and event.first_offset < 2)]
    place = cut.index(GOOD[-1])
    cut[place] = FinalLogRead(9.0, "l", "final", 2, 7)
    expect(cut, "acknowledged_records_stay", "l begins at 2, though nothing from 0 on was to be truncated")
    expect([TruncationRequested(1.0, "l", 1), *cut], "acknowledged_records_stay", "nothing from 1 on")
    cut[cut.index(began("final", 0))] = began("final", 2)
    assert judged([TruncationRequested(1.0, "l", 2), *cut]) == {}


def retained(*segments: tuple[int, int, int], first: int, time_s: float = 5.0) -> SegmentsListed:
    """The rest of a log whose segments have ten records and a hundred bytes: ledger, first offset and size of each."""
    listed = tuple(ListedSegment(ledger, start, start + 10, size) for ledger, start, size in segments)
    return SegmentsListed(time_s, "l", "k", first, listed)


KEEP = RetentionSet(0.5, "l", 250, 150)
FOUR = [(1, 0, 100), (2, 10, 100), (3, 20, 100), (4, 30, 100)]


@pytest.mark.parametrize(
    "events",
    [
        [retained(*FOUR, first=0)],
        # 400 bytes, then 300: twice there was more than was to be kept.
        [retained(*FOUR, first=0), retained(*FOUR[1:], first=10), retained(*FOUR[2:], first=20)],
        # Asked for, in the midst of a segment; 220 bytes are left, so retention takes no more.
        [TruncationRequested(4.0, "l", 25), retained(*FOUR[2:], first=25)],
        # The segment that went was never seen while it was there; it may have been as large as segments get.
        [retained(*FOUR[2:], first=20)],
        # A marked segment is still listed.
        [SegmentsListed(5.0, "l", "k", 10, (ListedSegment(1, 0, 10, 100, True), *retained(*FOUR[1:], first=10).segments))],
    ],
)
def test_what_retention_may_take_may_be_gone(events: list[object]) -> None:
    first = events[-1].first_offset if isinstance(events[-1], SegmentsListed) else 0
    assert judged([KEEP, *events, FinalLogRead(9.0, "l", "final", first, 40)]) == {}


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([retained(*FOUR, first=0), retained(FOUR[3], first=30)], "began at 30 .* it has had 200 bytes, and was to keep 250"),
        ([retained(*FOUR[2:], first=20), retained(first=40)], "began at 40 .* it has had 100 bytes"),
        ([retained(first=40)], "began at 40 .* it has had 150 bytes"),
        ([retained(*FOUR, first=0), retained(*FOUR[1:], first=12)], "within the segment from 10 to 20"),
        ([TruncationRequested(4.0, "l", 20), retained(*FOUR, first=0), retained(FOUR[3], first=30)], "began at 30"),
    ],
)
def test_retention_that_takes_too_much(events: list[object], message: str) -> None:
    first = events[-1].first_offset if isinstance(events[-1], SegmentsListed) else 0
    expect([KEEP, *events, FinalLogRead(9.0, "l", "final", first, 40)], "acknowledged_records_stay", message)


def test_a_log_that_begins_later_than_when_it_was_last_looked_at() -> None:
    events = [KEEP, retained(*FOUR[1:], first=10), FinalLogRead(9.0, "l", "final", 20, 40)]
    expect(events, "acknowledged_records_stay", "l begins at 20, though nothing from 10 on was to be truncated")


def test_what_is_let_go_of_a_log_without_retention() -> None:
    events = [retained(*FOUR[1:], first=10), FinalLogRead(9.0, "l", "final", 10, 40)]
    expect(events, "acknowledged_records_stay", "l begins at 10, though nothing from 0 on was to be truncated")


# Writers keep their order.


def test_records_of_a_writer_that_changed_places() -> None:
    expect([taken(1.0, "w1", 1, 0), offered(1.0, "w1", 1, b"b", b"a"), *GOOD[3:]], "writers_keep_their_order", "appended after")


def test_a_record_that_is_missing_before_one_that_is_there() -> None:
    expect(changed(GOOD[1], offered(1.1, "w1", 1, b"gone", b"a")), "writers_keep_their_order", "b'gone' of w1 .* is not in l, but b'a'")


def test_what_was_truncated_before_anybody_read_it_is_not_missing() -> None:
    events = [
        TruncationRequested(1.0, "l", 1),
        taken(1.0, "w1", 1, 0),
        offered(1.0, "w1", 1, b"a", b"b"),
        began("final", 1),
        read("final", 1, b"b"),
        FinalLogRead(9.0, "l", "final", 1, 2),
    ]
    assert judged(events) == {}


# Batches.


def final_with(*batches: LogRead) -> list[object]:
    """The good history with other entries from offset 3 on."""
    end = batches[-1].first_offset + len(batches[-1].records)
    kept = [event for event in GOOD[:-2] if not (isinstance(event, LogRead) and event.epoch == 0)]
    return [*kept, *batches, ReadingEnded(9.0, "l", "final", end), FinalLogRead(9.0, "l", "final", 0, end)]


def published(offset: int, *records: bytes, ledger: int) -> LogRead:
    return read("final", offset, *records, epoch=0, ledger=ledger)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([published(3, b"e", b"f", ledger=12)], "batch 0 .*staged by one, begins at 3 and is not there whole"),
        ([published(3, b"g", ledger=13), published(4, b"e", b"f", ledger=12)], "not there whole, in one piece and in order"),
        ([published(3, b"e", b"f", b"g", ledger=12), published(6, b"E", ledger=15)], "batch 0 of app in l is there 2 times, by one, two"),
        ([published(3, b"h", ledger=14)], "batch 0 of app in l was published at 3.200000 .staged by one. and is not in the log"),
        ([published(3, b"E", ledger=15)], "published at 3.200000 .staged by one. and is not in the log"),
        (
            [published(3, b"h", ledger=14), published(4, b"e", b"f", b"g", ledger=12)],
            "batch 1 of app in l begins at 3, before the end of batch 0",
        ),
        ([published(3, b"h", ledger=14), published(4, b"e", b"f", b"g", ledger=12)], "reported at 3 to 6 and is at .4, 7."),
    ],
)
def test_a_batch_that_is_not_there_once_and_whole(entries: list[LogRead], message: str) -> None:
    found = judged(final_with(*entries))["batches_are_there_once"]
    # Batch 1 may come first only in the text; the order of batches is judged where both are there.
    if "before the end" in message:
        message = "begins at 3, before the end of batch 0|batch 1 of app in l begins at 3"
    assert any(re.search(message, violation) for violation in found), found


def test_a_batch_whose_outcome_nobody_knows_may_be_missing() -> None:
    assert judged(final_with(published(3, b"e", b"f", ledger=12), published(5, b"g", ledger=13))) == {}


def test_a_batch_published_by_two() -> None:
    events = [*GOOD, BatchPublished(3.4, "l", "app", 0, "two", 3, 4, False)]
    expect(events, "batches_are_there_once", "was published by 2 publishes: one, two", "staged by two. and is not in the log")


def test_a_batch_of_which_its_publisher_was_told_that_it_is_not_there() -> None:
    expect(
        [*GOOD, BatchRefused(3.15, "l", "app", 0, "one")],
        "batches_are_there_once",
        "batch 0 of app in l, staged by one, is there; at 3.150000 its publisher learned that it is not",
    )
    assert judged([*GOOD, BatchRefused(3.15, "l", "app", 0, "two")]) == {}


def test_a_batch_without_records_may_be_in_the_log() -> None:
    events = [
        BatchStaged(3.0, "l", "app", 0, "one", ((b"e",),)),
        BatchStaged(3.0, "l", "app", 0, "none", ((), ())),
        BatchPublished(3.1, "l", "app", 0, "none", 0, 0, False),
        BatchPublished(3.2, "l", "app", 0, "one", 0, 0, True),
        began("final", 0),
        FinalLogRead(9.0, "l", "final", 0, 0),
    ]
    assert judged(events) == {}


# Epochs.


def test_two_writers_of_one_epoch() -> None:
    expect([*GOOD, taken(2.0, "w3", 2, 2)], "epochs_end_what_was_before", "w2 and w3 have both taken l over in epoch 2")


def test_an_epoch_that_begins_before_the_one_before() -> None:
    expect([*GOOD, taken(2.6, "w3", 3, 1)], "epochs_end_what_was_before", "epoch 3 of l begins at 1, epoch 2 before it at 2")


def test_a_deposed_writer_that_is_told_of_success() -> None:
    events = [*GOOD, acknowledged(2.5, "w1", 1, 2, b"y")]
    expect(
        events,
        "epochs_end_what_was_before",
        "acknowledged up to 3 of l, but epoch 2 begins at 2",
        "records of 2.400000 .* w2 had it since 2.000000",
    )


def test_a_record_of_an_old_epoch_behind_the_beginning_of_a_new_one() -> None:
    events = changed(GOOD[26], read("final", 2, b"d", epoch=1, ledger=10, wall=6))
    expect(events, "epochs_end_what_was_before", "offset 2 of l, of epoch 1, but epoch 2 begins at 2")


def test_a_record_of_a_new_epoch_before_its_beginning() -> None:
    expect([*GOOD, began("v", 1), read("v", 1, b"b", epoch=2)], "epochs_end_what_was_before", "offset 1 of l, of epoch 2, but")


# Wall time.


def test_wall_time_that_goes_back_from_one_writer_to_the_next() -> None:
    expect(changed(GOOD[26], read("final", 2, b"d", epoch=2, ledger=11, wall=5)), "wall_times_rise", "6 at offset 1, 5 at 2")


def test_wall_time_that_goes_back_within_a_published_ledger() -> None:
    events = changed(GOOD[28], read("final", 5, b"g", epoch=0, ledger=12, wall=1))
    expect(events, "wall_times_rise", "2 at offset 3, 1 at 5 .ledgers 12 and 12")


# Ends.


def test_an_end_beyond_what_is_there() -> None:
    expect([*GOOD, EndRead(5.0, 5.1, "l", "p", 8)], "ends_are_readable", "an end of l at 8; it ends at 7")


def test_an_end_before_what_was_readable() -> None:
    expect([*GOOD, EndRead(2.4, 2.6, "l", "p", 2)], "ends_are_readable", "an end of l at 2; it was readable up to 3 at 2.300000")


def test_an_end_asked_for_before_it_was_readable_may_lie_before() -> None:
    assert judged([*GOOD, EndRead(2.2, 2.6, "l", "p", 2)]) == {}
