"""The sources work without the parts that PySpark 4.1 lacks, and refuse by name the options that need them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.unit.spark.stand import LOG, Stand, stand
from triplicate.errors import ConfigError, LogReplaced
from triplicate.spark.cluster import versions
from triplicate.spark.cluster.access import LogAccess
from triplicate.spark.core.log_options import log_read_options
from triplicate.spark.logs import streaming
from triplicate.spark.logs.streaming import LogStreamReader

URI = {"metadataserviceuri": "memory:", "log": LOG, "startingoffsets": "earliest"}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    monkeypatch.setattr(versions, "HAS_LIMITS", False)
    monkeypatch.setattr(streaming, "HAS_LIMITS", False)
    monkeypatch.setattr(streaming, "LOOK_INTERVAL_S", 0.0)
    with stand(monkeypatch) as made:
        yield made


def stream(**more: str) -> LogStreamReader:
    return LogStreamReader(log_read_options({**URI, **more}, streaming=True), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger"])
def test_a_limit_is_refused_with_what_to_do(cluster: Stand, name: str) -> None:
    with pytest.raises(ConfigError, match=f"option '{name}' needs PySpark 4.2 or later"):
        stream(**{name.lower(): "10"})


def test_a_stream_without_a_start_reads_to_the_end(cluster: Stand) -> None:
    cluster.write(b"a", b"b")
    reader = stream()
    start, end = reader.initialOffset(), reader.latestOffset()
    assert (start["logs"], end["logs"]) == ({LOG: 0}, {LOG: 2})
    assert len(reader.partitions(start, end)) == 1
    assert reader.latestOffset() == end


def test_a_log_that_is_made_again_is_found_when_the_batch_is_planned(cluster: Stand) -> None:
    cluster.write(b"a", b"b", b"c")
    start = stream().latestOffset()
    cluster.make_again()
    cluster.write(*([b"x"] * 5))
    end = stream().latestOffset()
    with pytest.raises(LogReplaced, match="deleted and created again"):
        stream().partitions(start, end)
    assert len(stream(failondataloss="false").partitions(start, end)) == 1


def test_an_end_before_the_start_ends_the_query(cluster: Stand) -> None:
    cluster.write(b"a", b"b", b"c")
    end = stream().latestOffset()
    before = {**end, "logs": {LOG: 2}}
    with pytest.raises(LogReplaced, match="ends at offset 2, the stream is at 3"):
        stream().partitions(end, before)


def test_a_log_that_is_not_named_any_more_is_said(cluster: Stand) -> None:
    cluster.write(b"a")
    end = stream().latestOffset()
    start = {"v": 2, "ids": {**end["ids"], "other": "00"}, "logs": {LOG: 0, "other": 7}}
    with pytest.raises(
        ConfigError, match=r"log 'other' at offset 7.*read from its first record, since this PySpark does not let it be kept"
    ):
        stream().partitions(start, end)


def test_a_stream_from_the_latest_offset_begins_at_the_end_that_was_asked_first(cluster: Stand) -> None:
    """PySpark 4.1 asks for the end of the first batch, and then for its beginning."""
    cluster.write(b"a")
    reader = stream(startingoffsets="latest")
    end = reader.latestOffset()
    cluster.write(b"b")
    start = reader.initialOffset()
    assert start == end
    assert list(reader.partitions(start, end)) == []
    assert [part.value for part in reader.partitions(end, reader.latestOffset())] == [(LOG, 1, 2)]


def test_a_first_batch_from_the_latest_offset_is_planned_again(cluster: Stand) -> None:
    """The process ended before the commit; its successor finds a later beginning, and goes on where the batch ended."""
    cluster.write(b"a")
    end = stream(startingoffsets="latest").latestOffset()
    cluster.write(b"b")
    reader = stream(startingoffsets="latest")
    start = reader.initialOffset()
    assert start["logs"] == {LOG: 2}
    assert list(reader.partitions(start, end)) == []
    assert [part.value for part in reader.partitions(end, reader.latestOffset())] == [(LOG, 1, 2)]


def test_an_end_goes_back_only_where_the_log_does(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.write(b"a", b"b", b"c")
    reader = stream()
    end = reader.latestOffset()
    behind = replace(cluster.access.state(LOG), end=1)
    monkeypatch.setattr(LogAccess, "synced_states", lambda self, names, matches: {LOG: behind})
    assert reader.latestOffset() == end, "a server or a bookie that is behind"


def test_an_end_without_a_start_says_nothing_of_beginnings(cluster: Stand) -> None:
    cluster.write(b"a", b"b")
    assert "begun" not in stream().latestOffset()
