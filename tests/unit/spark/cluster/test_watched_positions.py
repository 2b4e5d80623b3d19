"""Positions of a stream as those of a named consumer: when they are saved, and that nothing of it ends the stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.spark.micro_batches import VALUES
from tests.unit.spark.stand import LOG, Stand, stand
from tests.waiting import wait_until
from triplicate.errors import ConfigError, ConnectionLost
from triplicate.log import WatchedPosition
from triplicate.spark.cluster import watched_positions
from triplicate.spark.logs.log_source import TriplicateDataSource
from triplicate.spark.logs.streaming import LogStreamReader

OPTIONS = {"metadataServiceUri": "memory:", "log": LOG, "consumerName": "copy", "startingOffsets": "earliest"}


class Clock:
    """The monotonic clock of the saves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with stand(monkeypatch) as made:
        yield made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(watched_positions, "time", clock)
    return clock


@pytest.fixture
def saves(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The positions that were saved, in order."""
    saved: list[int] = []
    save = WatchedPosition.save

    async def recorded(self: WatchedPosition, position: int) -> None:
        await save(self, position)
        saved.append(position)

    monkeypatch.setattr(WatchedPosition, "save", recorded)
    return saved


def reader(**options: str) -> Any:
    return TriplicateDataSource({**OPTIONS, **options}).streamReader(VALUES)


def batch(stream: LogStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    """Spark asks for the end of a batch: it has committed the one that ends at the start."""
    return stream.latestOffset(start, stream.getDefaultReadLimit())


def settled(cluster: Stand) -> None:
    """All saves that were begun have ended."""
    wait_until(lambda: not cluster.loop._posted, 20.0, "the ends of the saves")


def listed(cluster: Stand, log: str = LOG) -> list[tuple[str, int, int, bool]]:
    found = cluster.loop.call(cluster.logs.consumers(log))
    return [(one.name, one.position, one.lag, one.owner is not None) for one in found]


def test_a_stream_saves_what_is_committed_but_not_each_time(cluster: Stand, clock: Clock, saves: list[int]) -> None:
    cluster.write(b"0", b"1", b"2", b"3", b"4", b"5")
    stream = reader(maxOffsetsPerTrigger="1")
    at = stream.initialOffset()
    for _ in range(3):
        at = batch(stream, at)
        settled(cluster)
    assert saves == [0], "the beginning; the two others come within the interval"
    assert listed(cluster) == [("copy", 0, 6, True)]
    clock.now += watched_positions.SAVE_INTERVAL_S
    for _ in range(2):
        at = batch(stream, at)
        settled(cluster)
    assert saves == [0, 3], "the batch up to 4 is not committed yet"
    clock.now += watched_positions.SAVE_INTERVAL_S
    batch(stream, {**at, "logs": {LOG: 3}})
    settled(cluster)
    assert saves == [0, 3], "an idle stream writes nothing"
    batch(stream, at)
    settled(cluster)
    stream.stop()
    assert saves == [0, 3, 5]
    assert listed(cluster) == [("copy", 5, 1, False)]


def test_a_stream_that_has_read_everything_saves_before_spark_can_end_it(cluster: Stand, clock: Clock, saves: list[int]) -> None:
    cluster.write(b"0", b"1")
    stream = reader()
    end = batch(stream, stream.initialOffset())
    assert batch(stream, end) == end
    assert saves[-1] == 2, "without a wait for the interval, and before the look is answered"
    before = len(saves)
    cluster.write(b"2")
    end = batch(stream, end)
    for _ in range(3):
        assert batch(stream, end) == end
    assert len(saves) == before, "a stream of many small batches does not save after each"
    clock.now += watched_positions.REST_INTERVAL_S
    for _ in range(3):
        assert batch(stream, end) == end
    assert saves[before:] == [3]


def test_a_run_that_ends_saves_and_gives_the_consumer_up(cluster: Stand, clock: Clock, saves: list[int]) -> None:
    cluster.write(b"0", b"1", b"2")
    stream = reader(maxOffsetsPerTrigger="2")
    at, looks = stream.initialOffset(), 0
    stream.prepareForTriggerAvailableNow()
    while (end := batch(stream, at)) != at:
        at, looks = end, looks + 1
    assert looks == 2
    assert listed(cluster) == [("copy", 3, 0, False)]


def test_with_pyspark_4_1_the_commit_says_where_a_batch_ended(cluster: Stand, clock: Clock, saves: list[int]) -> None:
    cluster.write(b"0", b"1")
    stream = reader()
    stream.initialOffset()
    end = stream.latestOffset()
    settled(cluster)
    assert saves == []
    stream.commit(end)
    settled(cluster)
    assert saves == [2]


def test_a_stream_without_a_name_or_without_ids_saves_nothing(cluster: Stand, clock: Clock, saves: list[int]) -> None:
    cluster.write(b"0")
    stream = reader(consumerName="")
    batch(stream, stream.initialOffset())
    stream.stop()
    stream = reader()
    batch(stream, {"logs": {LOG: 0}, "v": 1})
    settled(cluster)
    stream.stop()
    assert saves == []
    assert listed(cluster) == []


def test_the_stream_that_follows_a_killed_one_waits_in_silence_and_two_streams_of_a_name_are_named_once(
    cluster: Stand, clock: Clock, saves: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    cluster.write(b"0", b"1")
    first, second = reader(), reader()
    start = first.initialOffset()
    end = batch(first, start)
    settled(cluster)
    with caplog.at_level(logging.WARNING, "triplicate"):
        for number in range(watched_positions.REFUSALS_UNNAMED + 2):
            assert batch(second, end) == end, "the stream goes on"
            settled(cluster)
            clock.now += watched_positions.SAVE_INTERVAL_S
            assert len(caplog.records) == (1 if number >= watched_positions.REFUSALS_UNNAMED else 0)
        assert "consumer 'copy' does not get its position: consumer 'copy' of log 'events' is used by 'Spark stream" in caplog.text
        first.stop()
        batch(second, end)
        settled(cluster)
        assert listed(cluster) == [("copy", 2, 0, True)]
        second.stop()
        assert len(caplog.records) == 1


def test_the_position_of_a_consumer_that_is_no_stream_stays(cluster: Stand, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    cluster.write(b"0", b"1")
    cluster.loop.call(cluster.logs.reset_consumer(LOG, "copy", 1))
    stream = reader()
    at = stream.initialOffset()
    with caplog.at_level(logging.WARNING, "triplicate"):
        for _ in range(4):
            at = batch(stream, at)
            settled(cluster)
            clock.now += watched_positions.SAVE_INTERVAL_S
            assert len(caplog.records) == 1, "at once"
        stream.stop()
    assert listed(cluster) == [("copy", 1, 1, False)]
    assert len(caplog.records) == 1
    assert "is no stream" in caplog.text


def test_a_run_that_ends_names_the_user_of_its_consumer(cluster: Stand, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    cluster.write(b"0", b"1")
    first, second = reader(), reader()
    start = first.initialOffset()
    end = batch(first, start)
    settled(cluster)
    second.prepareForTriggerAvailableNow()
    with caplog.at_level(logging.WARNING, "triplicate"):
        assert batch(second, end) == end
    assert "is used by 'Spark stream" in caplog.text


def test_a_log_that_was_made_again_has_a_position_of_its_own(cluster: Stand, clock: Clock) -> None:
    cluster.write(b"0", b"1")
    stream = reader(failOnDataLoss="false")
    at = batch(stream, batch(stream, stream.initialOffset()))
    settled(cluster)
    cluster.make_again()
    cluster.write(b"0")
    clock.now += watched_positions.SAVE_INTERVAL_S
    at = batch(stream, at)
    settled(cluster)
    clock.now += watched_positions.SAVE_INTERVAL_S
    batch(stream, at)
    settled(cluster)
    assert listed(cluster) == [("copy", 1, 0, True)]
    stream.stop()


@pytest.mark.parametrize("kind", [ConnectionLost, RuntimeError])
def test_a_cluster_that_does_not_answer_is_named_once_and_the_stream_goes_on(
    cluster: Stand, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: type[Exception]
) -> None:
    cluster.write(b"0", b"1")
    stream = reader()
    end = batch(stream, stream.initialOffset())
    settled(cluster)
    save = WatchedPosition.save

    async def fails(self: WatchedPosition, position: int) -> None:
        raise kind("no server answers")

    monkeypatch.setattr(WatchedPosition, "save", fails)
    with caplog.at_level(logging.WARNING, "triplicate"):
        for _ in range(3):
            clock.now += watched_positions.SAVE_INTERVAL_S
            assert batch(stream, end) == end
            settled(cluster)
        assert [record.message for record in caplog.records] == [
            "triplicate: a stream goes on, but consumer 'copy' does not get its position: no server answers"
        ]
    monkeypatch.setattr(WatchedPosition, "save", save)
    stream.stop()
    assert listed(cluster) == [("copy", 2, 0, False)]


def test_the_last_save_has_a_limit(cluster: Stand, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    cluster.write(b"0", b"1")
    stream = reader()
    end = batch(stream, stream.initialOffset())
    settled(cluster)
    cluster.write(b"2")
    assert batch(stream, end) != end

    async def hangs(self: WatchedPosition, position: int) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(WatchedPosition, "save", hangs)
    monkeypatch.setattr(watched_positions, "LAST_SAVE_LIMIT_S", 0.05)
    with caplog.at_level(logging.WARNING, "triplicate"):
        stream.stop()
    assert "the cluster took too long" in caplog.text


def test_a_name_that_is_too_long_is_refused_before_the_query_starts() -> None:
    with pytest.raises(ConfigError, match="'consumerName' has more than 256 bytes"):
        reader(consumerName="n" * 257)
