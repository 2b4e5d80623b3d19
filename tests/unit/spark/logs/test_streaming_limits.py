"""The limits on micro-batches and on tasks: least and most records, most bytes, least tasks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.spark.stand import LOG, Stand, stand
from triplicate.log import LogSettings
from triplicate.spark.cluster.versions import HAS_LIMITS, ReadAllAvailable, ReadMaxRows, ReadMinRows
from triplicate.spark.core.log_options import log_read_options
from triplicate.spark.logs import streaming
from triplicate.spark.logs.batch_readers import LogBatchReader
from triplicate.spark.logs.streaming import LogStreamReader

pytestmark = pytest.mark.skipif(not HAS_LIMITS, reason="PySpark 4.1 knows no limits on a micro-batch")
URI = {"metadataserviceuri": "memory:", "startingoffsets": "earliest"}


class PassingTime:
    """A clock that only tests move."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    monkeypatch.setattr(streaming, "LOOK_INTERVAL_S", 0.0)
    with stand(monkeypatch) as made:
        yield made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> PassingTime:
    made = PassingTime()
    monkeypatch.setattr(streaming, "time", made)
    return made


def stream(**given: str) -> LogStreamReader:
    return LogStreamReader(log_read_options({**URI, "log": LOG, **given}, streaming=True), None)  # type: ignore[arg-type]


def latest(reader: LogStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    return reader.latestOffset(start, reader.getDefaultReadLimit())


def test_a_small_batch_is_held_back_until_it_is_large_enough_or_the_delay_is_over(cluster: Stand, clock: PassingTime) -> None:
    reader = stream(minoffsetspertrigger="3", maxtriggerdelay="30s")
    assert reader.getDefaultReadLimit() == ReadMinRows(3)
    cluster.write(b"a")
    first = latest(reader, reader.initialOffset())
    assert first["logs"] == {LOG: 1}, "the first batch is not held back"
    cluster.write(b"b", b"c")
    clock.now += 29
    assert latest(reader, first) == first
    clock.now += 1
    second = latest(reader, first)
    assert second["logs"] == {LOG: 3}
    cluster.write(b"d", b"e", b"f")
    third = latest(reader, second)
    assert third["logs"] == {LOG: 6}, "enough records wait for nothing"
    clock.now += 1000
    assert latest(reader, third) == third
    cluster.write(b"g")
    assert latest(reader, third)["logs"] == {LOG: 7}, "the delay counts from the last batch with records"


def test_a_run_that_ends_and_one_that_reads_all_hold_nothing_back(cluster: Stand, clock: PassingTime) -> None:
    cluster.write(b"a")
    reader = stream(minoffsetspertrigger="3")
    first = latest(reader, reader.initialOffset())
    cluster.write(b"b")
    assert latest(reader, first) == first
    assert reader.latestOffset(first, ReadAllAvailable())["logs"] == {LOG: 2}
    reader.prepareForTriggerAvailableNow()
    assert latest(reader, first)["logs"] == {LOG: 2}


def test_a_batch_that_passes_over_lost_records_warns_once(cluster: Stand, clock: PassingTime, caplog: pytest.LogCaptureFixture) -> None:
    cluster.write(b"a", b"b", b"c")
    cluster.write(b"d")
    reader = stream(minoffsetspertrigger="3", failondataloss="false", maxoffsetspertrigger="3")
    first = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    stands = {**first, "logs": {LOG: 1}}
    cluster.loop.call(cluster.logs.truncate(LOG, 3))
    end = latest(reader, stands)
    assert end["logs"] == {LOG: 4}
    assert latest(reader, end) == end
    assert caplog.text.count("records are lost") == 1


def test_both_most_records_and_most_bytes_limit_a_batch(cluster: Stand) -> None:
    chance = random.Random(1)
    cluster.write(*(chance.randbytes(1000) for _ in range(20)))
    both = {"maxoffsetspertrigger": "10", "maxbytespertrigger": "5500"}
    reader = stream(**both)
    assert reader.getDefaultReadLimit() == ReadMaxRows(10)
    begin = reader.initialOffset()
    assert 4 <= latest(reader, begin)["logs"][LOG] <= 6
    assert latest(stream(**{**both, "maxoffsetspertrigger": "2"}), begin)["logs"] == {LOG: 2}
    assert reader.latestOffset(begin, ReadAllAvailable())["logs"] == {LOG: 20}


def test_a_read_has_at_least_so_many_tasks(cluster: Stand) -> None:
    cluster.loop.call(cluster.logs.create("other", LogSettings()))
    cluster.write(*([b"x"] * 17))
    cluster.write(b"y", b"y", log="other")

    def tasks(**given: str) -> int:
        read = log_read_options({**URI, "subscribe": f"{LOG},other", **given})
        parts = LogBatchReader(read, None).partitions()  # type: ignore[arg-type]
        assert sum(part.value[2] - part.value[1] for part in parts) == 19
        return len(parts)

    assert tasks() == 2
    for least in (1, 3, 7, 10, 19):
        assert tasks(minpartitions=str(least)) >= least
    assert tasks(minpartitions="100") == 19
    assert tasks(minpartitions="2", recordsperpartition="3") == 7
    reader = stream(minpartitions="4")
    end = latest(reader, reader.initialOffset())
    assert len(reader.partitions(reader.initialOffset(), end)) >= 4
