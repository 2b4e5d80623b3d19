"""Logs that are read by a pattern for their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.spark.stand import LOG, Stand, stand
from triplicate.errors import ConfigError, LogReplaced, NoSuchLog
from triplicate.log import LogSettings, Purpose, PurposeKind
from triplicate.spark.cluster import access
from triplicate.spark.core.log_options import log_read_options
from triplicate.spark.logs import streaming
from triplicate.spark.logs.batch_readers import LogBatchReader
from triplicate.spark.logs.streaming import LogStreamReader


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    monkeypatch.setattr(streaming, "LOOK_INTERVAL_S", 0.0)
    monkeypatch.setattr(access, "LOOK_SHARE", 0)
    with stand(monkeypatch) as made:
        yield made


def create(cluster: Stand, name: str, *values: bytes, **given: Any) -> None:
    cluster.loop.call(cluster.logs.create(name, LogSettings(), **given))
    if values:
        cluster.write(*values, log=name)


def batch(pattern: str, **given: str) -> list[Any]:
    read = log_read_options({"metadataserviceuri": "memory:", "subscribepattern": pattern, **given})
    return [part.value for part in LogBatchReader(read, None).partitions()]  # type: ignore[arg-type]


def stream(pattern: str = "shop-.*", **given: str) -> LogStreamReader:
    options = {"metadataserviceuri": "memory:", "subscribepattern": pattern, "startingoffsets": "earliest", **given}
    return LogStreamReader(log_read_options(options, streaming=True), None)  # type: ignore[arg-type]


def latest(reader: LogStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    return reader.latestOffset(start, reader.getDefaultReadLimit())


def test_a_batch_holds_all_logs_of_users_whose_whole_names_match(cluster: Stand) -> None:
    create(cluster, "shop-a", b"1")
    create(cluster, "shop-b", b"1", b"2")
    create(cluster, "my-shop-a", b"1")
    create(cluster, "shop-db", purpose=Purpose(PurposeKind.DATABASE, "shop"))
    create(cluster, "shop-kv", purpose=Purpose(PurposeKind.KEY_VALUE, "shop"))
    assert batch("shop-.*") == [("shop-a", 0, 1), ("shop-b", 0, 2)]
    assert batch("shop-(a|db)", startingoffsets='{"shop-a": 0}') == [("shop-a", 0, 1)]
    assert batch("shop") == [], "as in Kafka's source, no match is no error"


def test_offsets_are_for_the_logs_that_match(cluster: Stand) -> None:
    create(cluster, "shop-a", b"1", b"2")
    assert batch("shop-.*", startingoffsets='{"shop-a": 1}') == [("shop-a", 1, 2)]
    assert batch("shop-.*", startingtimestamp="0") == [("shop-a", 0, 2)]
    for option, edge in (("startingOffsets", "startingoffsets"), ("endingOffsetsByTimestamp", "endingoffsetsbytimestamp")):
        with pytest.raises(ConfigError, match=f"'{option}' names shop-b, which is not read; read are shop-a"):
            batch("shop-.*", **{edge: '{"shop-a": 1, "shop-b": 1}'})
    create(cluster, "shop-b", b"1")
    with pytest.raises(ConfigError, match="'startingOffsets' gives no number for shop-b"):
        batch("shop-.*", startingoffsets='{"shop-a": 1}')


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_stream_waits_for_logs_and_reads_each_from_its_first_record(cluster: Stand, start: str) -> None:
    reader = stream(startingoffsets=start)
    begin = reader.initialOffset()
    assert begin["logs"] == {}
    assert latest(reader, begin) == begin
    create(cluster, "shop-a", b"1")
    first = latest(reader, begin)
    assert (first["logs"], first["begun"]) == ({"shop-a": 1}, {"shop-a": 0})
    create(cluster, "shop-b", b"1", b"2")
    second = latest(reader, first)
    assert [part.value for part in reader.partitions(first, second)] == [("shop-b", 0, 2)]
    reader.prepareForTriggerAvailableNow()
    create(cluster, "shop-c", b"1")
    assert latest(reader, second) == second, "a run that ends reads the logs that were there when it began"


def test_a_log_that_is_deleted_ends_the_stream_unless_loss_is_allowed(cluster: Stand, caplog: pytest.LogCaptureFixture) -> None:
    create(cluster, "shop-a", b"1")
    create(cluster, "shop-b", b"1")
    stands = latest(stream(), stream().initialOffset())
    cluster.loop.call(cluster.logs.delete("shop-a"))
    with pytest.raises(NoSuchLog, match=r"log 'shop-a' was deleted: the stream is at its offset 1.*failOnDataLoss=false"):
        latest(stream(), stands)
    end = latest(stream(failondataloss="false"), stands)
    assert (end["logs"], end["left"]) == ({"shop-b": 1}, {"shop-a": 1})
    assert "'shop-a' was deleted" in caplog.text
    assert latest(stream(), end) == end, "it was said once"
    create(cluster, "shop-a", b"x", b"y")
    with pytest.raises(LogReplaced, match="log 'shop-a' was deleted and created again"):
        latest(stream(), end)
    again = stream(failondataloss="false")
    assert [part.value for part in again.partitions(end, latest(again, end))] == [("shop-a", 0, 2)]


def test_another_pattern_that_leaves_a_log_out_is_refused(cluster: Stand) -> None:
    create(cluster, "shop-a", b"1")
    stands = latest(stream(), stream().initialOffset())
    with pytest.raises(ConfigError, match="the options do not name it"):
        latest(stream("shop-b"), stands)
    with pytest.raises(ConfigError, match="the options do not name it"):
        stream("shop-b").partitions(stream().initialOffset(), stands)


def test_a_look_that_takes_long_is_followed_by_a_long_pause(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 10,000 logs a look takes a second or more, and an idle query would do nothing else."""
    monkeypatch.setattr(access, "LOOK_SHARE", 4)
    now, paused = [100.0], list[float]()

    class Slow:
        def synced_states(self, names: Any, matches: Any) -> dict[str, Any]:
            now[0] += 2.0
            return {}

    class PassingTime:
        def monotonic(self) -> float:
            return now[0]

        def sleep(self, seconds: float) -> None:
            paused.append(seconds)
            now[0] += seconds

    monkeypatch.setattr(access, "time", PassingTime())
    monkeypatch.setattr(cluster, "access", Slow())
    seen = access.LogStatePoller("memory:", "", [LOG], 0.1)
    seen.states()
    seen.states()
    assert paused == [8.0]
