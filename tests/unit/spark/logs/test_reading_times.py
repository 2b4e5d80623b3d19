"""Reads that begin and end at times, by the wall times of entries."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.unit.spark.stand import LOG, Stand, stand
from triplicate.errors import ConfigError
from triplicate.log import Logs, LogSettings
from triplicate.spark.core.given_options import EPOCH
from triplicate.spark.core.log_options import log_read_options
from triplicate.spark.logs.batch_readers import LogBatchReader
from triplicate.spark.logs.streaming import LogStreamReader

URI = {"metadataserviceuri": "memory:", "log": LOG}
BOTH = {"metadataserviceuri": "memory:", "subscribe": f"{LOG},other"}
STRATEGY = {"startingoffsetsbytimestampstrategy": "latest"}


def at(time_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=time_ms)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with stand(monkeypatch) as made:
        yield made


def batch(**given: str) -> list[Any]:
    parts = LogBatchReader(log_read_options({**URI, **given}), None).partitions()  # type: ignore[arg-type]
    return [part.value[1:] for part in parts]


def stream(**given: str) -> LogStreamReader:
    return LogStreamReader(log_read_options({**URI, **given}, streaming=True), None)  # type: ignore[arg-type]


def test_a_batch_holds_the_records_from_one_time_to_before_another(cluster: Stand) -> None:
    for time_ms in (1000, 2000, 3000):
        cluster.write_at(time_ms, b"a", b"b")
    assert batch(startingtimestamp="0") == batch(endingtimestamp="3001") == [(0, 6)]
    assert batch(startingtimestamp="2000", endingtimestamp="3000") == [(2, 4)]
    assert batch(startingtimestamp="1001", endingtimestamp="2001") == [(2, 4)]
    assert batch(startingtimestamp="2001", endingtimestamp="3000") == []
    assert batch(endingtimestamp="9999") == [(0, 6)], "an end behind the last record is the log's end"
    assert batch(startingoffsets=f'{{"{LOG}": 3}}', endingtimestamp="3000") == [(3, 4)]
    assert batch(startingoffsetsbytimestamp=f'{{"{LOG}": 3000}}') == [(4, 6)]


def test_a_time_without_a_record_at_or_after_it_is_refused_or_is_the_end(cluster: Stand) -> None:
    complaint = r"log 'events' has no record that was written at 1970-01-01T00:00:02\+00:00 \(2000 ms\) or later.*Strategy=latest"
    with pytest.raises(ConfigError, match=complaint):
        batch(startingtimestamp="2000")
    cluster.write_at(1000, b"a")
    with pytest.raises(ConfigError, match=complaint):
        batch(startingtimestamp="2000")
    with pytest.raises(ConfigError, match=complaint):
        stream(startingtimestamp="2000").initialOffset()
    assert batch(startingtimestamp="2000", **STRATEGY) == []


def test_each_log_has_a_time_of_its_own(cluster: Stand) -> None:
    cluster.loop.call(cluster.logs.create("other", LogSettings()))
    for time_ms in (1000, 2000):
        cluster.write_at(time_ms, b"a", log="other")
    for time_ms in (1000, 2000):
        cluster.write_at(time_ms, b"a")
    given = {
        **BOTH,
        "startingoffsetsbytimestamp": f'{{"{LOG}": 1500, "other": 500}}',
        "endingoffsetsbytimestamp": '{"events": 9, "other": 9}',
    }
    with pytest.raises(
        ConfigError, match=r"log 'events' would be read from 1970-01-01T00:00:01.500000\+00:00 to 1970-01-01T00:00:00.009000\+00:00"
    ):
        log_read_options(given)
    del given["endingoffsetsbytimestamp"]
    initial = LogStreamReader(log_read_options(given, streaming=True), None).initialOffset()  # type: ignore[arg-type]
    assert initial["logs"] == {LOG: 1, "other": 0}


def test_a_record_that_comes_while_its_log_is_searched_is_not_of_a_later_time(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.write_at(1000, b"a")
    search = Logs.offset_at
    grown: list[int] = []

    async def grows(self: Logs, name: str, position: Any) -> int:
        found = await search(self, name, position)
        if len(grown) < 2:
            grown.append(found)
            writer = await self.writer(name, owner="test")
            await writer.append_entry([b"b"])
            await writer.close()
        return found

    monkeypatch.setattr(Logs, "offset_at", grows)
    assert cluster.access.offset_at(LOG, at(5000), 1) is None
    assert grown == [1, 2]
    assert cluster.access.offset_at(LOG, at(1000), 3) == 0


def test_a_stream_that_begins_at_the_end_for_want_of_a_record_begins_there_again(cluster: Stand) -> None:
    """The first record at or after the time comes before the first batch is decided; a restart must not begin behind it."""
    cluster.write_at(1000, b"a")
    reader = stream(startingtimestamp="2000", **STRATEGY)
    start = reader.initialOffset()
    assert start["logs"] == {LOG: 1}
    cluster.write_at(3000, b"b")
    first = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert first == start, "the beginning is in the checkpoint before a record is delivered"
    cluster.write_at(4000, b"c")
    again = stream(startingtimestamp="3500", **STRATEGY)
    assert again.partitions(again.initialOffset(), first) == []
    end = again.latestOffset(first, again.getDefaultReadLimit())
    assert [part.value[1:] for part in again.partitions(first, end)] == [(1, 3)]


def test_a_stream_that_begins_at_a_record_delivers_it_with_its_first_batch(cluster: Stand) -> None:
    cluster.write_at(1000, b"a")
    cluster.write_at(2000, b"b")
    reader = stream(startingtimestamp="1500")
    end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert (end["logs"], end["begun"]) == ({LOG: 2}, {LOG: 1})
    cluster.loop.call(cluster.logs.truncate(LOG, 1))
    again = stream(startingtimestamp="1500")
    assert [part.value[1:] for part in again.partitions(again.initialOffset(), end)] == [(1, 2)]
