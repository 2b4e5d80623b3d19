"""Where a change feed begins and ends by time, and the limits of its micro-batches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.unit.spark.feed_stand import Shop, Stream, shop
from triplicate.errors import ArgumentError, ConfigError, OffsetTruncated, SchemaChanged
from triplicate.sql.core import batch_builder
from triplicate.sql.executor import change_capture, staged_parts

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A table of three rows, written at 12:00, 13:00 and 14:00."""
    with shop(tmp_path, monkeypatch) as made:
        for hour, statement in enumerate(
            ("create table t(id integer primary key)", *(f"insert into t values({one})" for one in (1, 2, 3)))
        ):
            made.wall_us = round(NOON.timestamp() * 1e6) + max(0, hour - 1) * 3_600_000_000
            made.must(statement)
        yield made


def ids(db: Shop, **given: str) -> list[int]:
    return [row["id"] for row in db.batch("t", None, **given)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startingtimestamp": "2026-11-01 13:00:00"}, [2, 3]),
        ({"startingtimestamp": "2026-11-01 13:00:00.000001"}, [3]),
        ({"startingtimestamp": "2026-11-01T15:00:00+02:00"}, [2, 3]),
        ({"startingtimestamp": str(round(NOON.timestamp() * 1e3) + 3_600_000)}, [2, 3]),
        ({"startingtimestamp": "-1"}, [1, 2, 3]),
        ({"endingtimestamp": "2026-11-01 13:00:00"}, [1, 2]),
        ({"endingtimestamp": "2026-11-01 12:59:59.999999"}, [1]),
        ({"endingtimestamp": "9999-12-31 23:59:59.999999"}, [1, 2, 3]),
        ({"endingtimestamp": "2026-10-01"}, []),
        ({"startingtimestamp": "2026-11-01 12:30", "endingtimestamp": "2026-11-01 13:30Z"}, [2]),
        ({"startingtimestamp": "2026-11-01 12:30", "endingversion": "2"}, [2]),
        ({"startingversion": "3", "endingtimestamp": "2026-11-01 13:30"}, []),
    ],
)
def test_a_read_begins_and_ends_by_time(db: Shop, given: dict[str, str], expected: list[int]) -> None:
    assert ids(db, **given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"startingtimestamp": "noon"}, "option 'startingTimestamp' is a time as .*, not 'noon'"),
        ({"startingtimestamp": "9" * 20}, "option 'startingTimestamp' is a time as"),
        ({"startingtimestamp": "2026-11-01", "startingversion": "1"}, "'startingVersion' or 'startingTimestamp', not both"),
        ({"endingtimestamp": "2026-11-01", "endingversion": "1"}, "'endingVersion' or 'endingTimestamp', not both"),
        ({"startingtimestamp": "2026-11-02", "endingtimestamp": "2026-11-01"}, "lies after 'endingTimestamp'"),
        ({"maxbytespertrigger": "9", "maxversionspertrigger": "9"}, "not both: Spark knows one limit at a time"),
    ],
)
def test_times_and_limits_that_contradict_are_refused(db: Shop, given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ids(db, **given)


def test_a_time_after_the_last_transaction_is_refused_and_a_stream_waits(db: Shop) -> None:
    with pytest.raises(ArgumentError, match=r"ends at version 4, and all before it is older than .* 2026-11-01 14:00:00.000001\+00:00"):
        ids(db, startingtimestamp="2026-11-01 14:00:00.000001")
    stream = Stream(db, "t", startingtimestamp="2026-11-02")
    assert stream.trigger() == []
    db.must("insert into t values(4)")
    assert [row["id"] for row in stream.trigger()] == [4]
    with pytest.raises(ConfigError, match="'endingTimestamp' is for batch reads"):
        Stream(db, "t", endingtimestamp="2026-11-02").start()


def test_a_stream_begins_at_a_time_and_goes_on_from_its_checkpoint(db: Shop) -> None:
    stream = Stream(db, "t", startingtimestamp="2026-11-01 13:00")
    assert [row["id"] for row in stream.trigger()] == [2, 3]
    db.must("insert into t values(4)")
    stream.start()
    assert [row["id"] for row in stream.trigger()] == [4]


def test_changes_since_a_time_that_may_have_been_truncated_are_refused(db: Shop) -> None:
    db.first = 2
    with pytest.raises(OffsetTruncated, match=r"begins at version 2, which is not older than startingTimestamp 2026-11-01 12:30"):
        ids(db, startingtimestamp="2026-11-01 12:30")
    with pytest.raises(OffsetTruncated, match="may have been truncated"):
        Stream(db, "t", startingtimestamp="2026-11-01 12:30").trigger()
    assert ids(db, startingtimestamp="2026-11-01 13:30") == [3]
    db.must("create table u(id integer primary key)", "insert into u values(7)")
    assert [row["id"] for row in db.batch("u", startingtimestamp="2026-11-01 12:30")] == [7], "all changes of the table are there"


def test_rows_from_before_the_time_count_as_the_consumers(db: Shop) -> None:
    db.wall_us += 3_600_000_000
    db.must("alter table t add column n integer default 5", "insert into t values(4, 4)")
    with pytest.raises(SchemaChanged, match="column 'n' was added, with 5 in all rows"):
        ids(db, startingtimestamp="2026-11-01 13:30")
    rows = db.batch("t", startingtimestamp="2026-11-01 13:30", schemaevents="deliver")
    assert [(row["_change_type"], row["id"], row["n"]) for row in rows] == [("add_column", None, 5), ("insert", 3, 5), ("insert", 4, 4)]


def test_a_micro_batch_has_about_a_number_of_bytes(db: Shop) -> None:
    """Each transaction has one byte in the stand."""
    stream = Stream(db, "t", maxbytespertrigger="2")
    found = []
    while not stream.checkpoint or stream.checkpoint["logs"]["shop-log"] < db.end:
        found.append([row["id"] for row in stream.trigger()])
    assert found == [[1], [2, 3]]
    assert stream.trigger() == []


@pytest.mark.parametrize("limit", ["maxversionspertrigger", "maxbytespertrigger"])
def test_a_transaction_of_several_records_is_in_one_micro_batch(db: Shop, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(change_capture, "PIECE_BYTES", 300)
    monkeypatch.setattr(staged_parts, "PART_BYTES", 300)
    monkeypatch.setattr(batch_builder, "MAX_ENTRY_BYTES", batch_builder.ENTRY_MARGIN_BYTES + 300)
    before = db.end
    db.transaction("insert into t with recursive c(i) as (values(10) union all select i + 1 from c limit 200) select i from c")
    assert db.end >= before + 3
    db.must("insert into t values(999)")
    stream = Stream(db, "t", maxversionspertrigger="2") if limit.startswith("maxv") else Stream(db, "t", maxbytespertrigger="2")
    found: list[list[int]] = []
    while not stream.checkpoint or stream.checkpoint["logs"]["shop-log"] < db.end:
        found.append([row["id"] for row in stream.trigger()])
    assert [1, 2, 3, *range(10, 210), 999] == [number for batch in found for number in batch]
    (large,) = [batch for batch in found if 10 in batch]
    assert set(range(10, 210)) <= set(large)
    rows = db.batch("t", startingversion=str(before), endingversion=str(before + 1))
    assert [row["id"] for row in rows] == [*range(10, 210)]
    assert [(row["_commit_version"], row["_seq"]) for row in rows] == sorted((row["_commit_version"], row["_seq"]) for row in rows)
