"""Reading logs as the sources read them, over ledgers in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.spark.stand import LOG, Stand, stand
from triplicate.errors import OffsetGap, OffsetTruncated
from triplicate.spark import access
from triplicate.spark.options import StartingPoint, log_read_options
from triplicate.spark.reading import end_points, plan_log_parts, start_points
from triplicate.spark.streaming import LogStreamReader

URI = {"metadataserviceuri": "memory:"}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with stand(monkeypatch) as made:
        yield made


def read_options(**given: str) -> Any:
    return log_read_options({**URI, "log": LOG, **given})


def stream(**given: str) -> LogStreamReader:
    return LogStreamReader(read_options(**given), None)  # type: ignore[arg-type]


def test_planned_ranges_deliver_every_record_once(cluster: Stand) -> None:
    cluster.write(*(b"%d" % number for number in range(20)))
    parts = cluster.access.plan(LOG, 3, 18, 4)
    delivered = [value for part in parts for entry in cluster.access.entries(part) for value in entry.view.values(entry.low, entry.high)]
    assert delivered == [b"%d" % number for number in range(3, 18)]


def test_a_closed_ledger_that_ends_too_early_is_an_error_at_once(cluster: Stand) -> None:
    cluster.write(b"a", b"b")
    (part,) = cluster.access.plan(LOG, 0, 2, 100)
    assert part.last_entry is not None
    short = type(part)(part.ledger_id, part.segment_first_offset, part.first_offset, 5, part.last_entry)
    delivered = cluster.access.entries(short)
    assert [next(delivered).first_offset, next(delivered).first_offset] == [0, 1]
    with pytest.raises(OffsetGap):
        next(delivered)


def test_points_are_words_or_offsets_within_the_log(cluster: Stand) -> None:
    cluster.write(b"a", b"b", b"c")
    logs = cluster.access
    read = read_options(endingoffsets=f'{{"{LOG}": 2}}')
    assert start_points(logs, read, StartingPoint("earliest", {})) == {LOG: 0}
    assert start_points(logs, read, StartingPoint("latest", {})) == {LOG: 3}
    assert end_points(logs, read) == {LOG: 2}
    assert end_points(logs, read_options(endingoffsets=f'{{"{LOG}": 9}}')) == {LOG: 3}


def test_a_start_after_the_end_plans_nothing(cluster: Stand) -> None:
    cluster.write(b"a", b"b", b"c")
    assert plan_log_parts(cluster.access, {LOG: 3}, {LOG: 1}, 10) == []
    assert stream().partitions({"v": 1, "logs": {LOG: 3}}, {"v": 1, "logs": {LOG: 1}}) == []


def test_truncated_records_are_an_error_unless_loss_is_allowed(cluster: Stand) -> None:
    cluster.write(b"a", b"b")
    cluster.write(b"c")
    cluster.loop.call(cluster.logs.truncate(LOG, 2))
    at_zero = StartingPoint(None, {LOG: 0})
    with pytest.raises(OffsetTruncated, match="failOnDataLoss=false"):
        start_points(cluster.access, read_options(), at_zero)
    assert start_points(cluster.access, read_options(failondataloss="false"), at_zero) == {LOG: 2}
    start, end = {"v": 1, "logs": {LOG: 1}}, {"v": 1, "logs": {LOG: 3}}
    with pytest.raises(OffsetTruncated, match="failOnDataLoss=false"):
        stream().partitions(start, end)
    (part,) = stream(failondataloss="false").partitions(start, end)
    assert part.value == (LOG, 2, 3)


def test_the_first_offset_of_a_stream_stays_what_it_was(cluster: Stand) -> None:
    cluster.write(b"a")
    reader = stream()
    assert reader.initialOffset() == {"logs": {LOG: 1}, "v": 1}
    cluster.write(b"b")
    assert reader.initialOffset() == {"logs": {LOG: 1}, "v": 1}


def test_a_trigger_takes_as_much_as_is_allowed(cluster: Stand) -> None:
    cluster.write(*(os.urandom(1000) for _ in range(10)))
    start = {"v": 1, "logs": {LOG: 2}}
    by_records, by_bytes = stream(maxoffsetspertrigger="3"), stream(maxbytespertrigger="2200")
    assert by_records.latestOffset(start, by_records.getDefaultReadLimit())["logs"] == {LOG: 5}
    assert by_bytes.latestOffset(start, by_bytes.getDefaultReadLimit())["logs"] == {LOG: 4}
    unlimited = stream()
    assert unlimited.latestOffset(start, unlimited.getDefaultReadLimit())["logs"] == {LOG: 10}


def test_bytes_of_the_open_segment_count_too(cluster: Stand) -> None:
    writer = cluster.loop.call(cluster.logs.writer(LOG, owner="w"))
    for _ in range(10):
        cluster.loop.call(writer.append_entry([os.urandom(1000)]))
    cluster.loop.call(writer.noop())
    reader = stream(maxbytespertrigger="2200")
    limited = reader.latestOffset({"v": 1, "logs": {LOG: 0}}, reader.getDefaultReadLimit())["logs"][LOG]
    assert 1 <= limited <= 2
    cluster.loop.call(writer.close())


def test_an_available_now_stream_does_not_look_beyond_its_beginning(cluster: Stand) -> None:
    cluster.write(b"a", b"b")
    reader = stream()
    reader.latestOffset({"v": 1, "logs": {LOG: 0}}, reader.getDefaultReadLimit())
    cluster.write(b"c")
    reader.prepareForTriggerAvailableNow()
    cluster.write(b"d")
    end = reader.latestOffset({"v": 1, "logs": {LOG: 0}}, reader.getDefaultReadLimit())
    assert end["logs"] == {LOG: 3}
    assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end


def test_a_stream_never_goes_back_and_reads_a_log_that_joins_from_its_first_record(cluster: Stand) -> None:
    cluster.write(b"a", b"b")
    reader = stream()
    assert reader.latestOffset({"v": 1, "logs": {LOG: 7}}, reader.getDefaultReadLimit())["logs"] == {LOG: 7}
    (part,) = reader.partitions({"v": 1, "logs": {}}, {"v": 1, "logs": {LOG: 2}})
    assert part.value[1] == 0


def test_ends_are_asked_once_in_an_interval(cluster: Stand) -> None:
    seen = access.Seen("memory:", "", [LOG], 3600)
    assert seen.ends() == {LOG: 0}
    cluster.write(b"a")
    assert seen.ends() == {LOG: 0}
    assert seen.ends(fresh=True) == {LOG: 1}
