"""Reading logs as the sources read them, over ledgers in memory."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.spark.stand import LOG, Stand, stand
from triplicate.errors import ArgumentError, ConfigError, LogReplaced, NoSuchLog, OffsetGap, OffsetTruncated
from triplicate.log import Logs, LogSettings
from triplicate.log.store.head_store import HeadStore
from triplicate.spark.cluster import access
from triplicate.spark.cluster.access import LogAccess
from triplicate.spark.cluster.progress import DataLoss, LogState
from triplicate.spark.core.log_options import log_read_options
from triplicate.spark.logs.batch_readers import LogBatchReader
from triplicate.spark.logs.reading import plan_log_parts
from triplicate.spark.logs.streaming import LogStreamReader

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


def test_pieces_of_a_log_are_read_here_and_there_with_its_ledgers_open(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    for start in range(0, 400, 100):
        cluster.write(*(b"%d" % number for number in range(start, start + 100)))
    opened: list[int] = []
    client = cluster.logs.client
    before = client.open

    def counted(ledger_id: int, **given: Any) -> Any:
        opened.append(ledger_id)
        return before(ledger_id, **given)

    monkeypatch.setattr(client, "open", counted)
    monkeypatch.setattr(access, "OPEN_LEDGERS", 3)
    chance = random.Random(1)
    with cluster.access.parts(LOG, 10, 390) as parts:
        for _ in range(200):
            begin = chance.randrange(10, 390)
            end = chance.randrange(begin, min(390, begin + 150)) + 1
            found = [entry.view.values(entry.low, entry.high)[0] for entry in parts.entries(begin, end)]
            assert found == [b"%d" % number for number in range(begin, end)]
            assert next(iter(parts.entries(begin, end))).first_offset == begin, "the rest is not asked for"
        few = len(opened)
        for begin in range(110, 190):
            next(iter(parts.entries(begin, begin + 1)))
        assert len(opened) <= few + 1
        assert list(parts.entries(5, 10)) == []
    with cluster.access.parts(LOG, 10, 10) as nothing:
        assert list(nothing.entries(10, 11)) == []


def test_the_offset_of_a_time_is_that_of_the_first_record_written_then(cluster: Stand) -> None:
    cluster.write(b"a", b"b")
    (part,) = cluster.access.plan(LOG, 0, 1, 1)
    written = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=next(cluster.access.entries(part)).view.header.wall_time_us)
    assert cluster.access.offset_at(LOG, written, 2) == 0
    assert cluster.access.offset_at(LOG, written + timedelta(days=1), 2) is None


def test_a_closed_ledger_that_ends_too_early_is_an_error_at_once(cluster: Stand) -> None:
    cluster.write(b"a", b"b")
    (part,) = cluster.access.plan(LOG, 0, 2, 100)
    assert part.last_entry is not None
    short = type(part)(part.ledger_id, part.segment_first_offset, part.first_offset, 5, part.last_entry)
    delivered = cluster.access.entries(short)
    assert [next(delivered).first_offset, next(delivered).first_offset] == [0, 1]
    with pytest.raises(OffsetGap):
        next(delivered)


def offset(position: int, log_id: str | None = None, **others: int) -> dict[str, Any]:
    """A stream's offset, of version 1 where no id is given."""
    logs = {LOG: position, **others}
    return {"v": 1, "logs": logs} if log_id is None else {"v": 2, "ids": {LOG: log_id}, "logs": logs}


def begun(first: int, position: int, log_id: str) -> dict[str, Any]:
    """The end of a batch that does not begin where the one before it ended."""
    return {**offset(position, log_id), "begun": {LOG: first}}


def latest(reader: LogStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    return reader.latestOffset(start, reader.getDefaultReadLimit())


def ranges(parts: Any) -> list[tuple[int, int]]:
    return [part.value[1:] for part in parts]


def batch(**given: str) -> list[tuple[int, int]]:
    """The ranges that a batch job plans to read."""
    return ranges(LogBatchReader(read_options(**given), None).partitions())  # type: ignore[arg-type]


def test_a_batch_reads_between_words_or_offsets_within_the_log(cluster: Stand) -> None:
    cluster.write(b"a", b"b", b"c")
    assert batch() == batch(startingoffsets="earliest", endingoffsets="latest") == [(0, 3)]
    assert batch(startingoffsets=f'{{"{LOG}": 1}}', endingoffsets=f'{{"{LOG}": 2}}') == [(1, 2)]
    assert batch(endingoffsets=f'{{"{LOG}": 9}}') == [(0, 3)]
    assert batch(startingoffsets=f'{{"{LOG}": 3}}') == []


def test_a_start_beyond_the_end_is_refused_unless_loss_is_allowed(cluster: Stand) -> None:
    cluster.write(b"a", b"b", b"c")
    beyond = f'{{"{LOG}": 4}}'
    with pytest.raises(ArgumentError, match=r"ends at offset 3; startingOffsets says 4\. Set failOnDataLoss=false"):
        batch(startingoffsets=beyond)
    assert batch(startingoffsets=beyond, failondataloss="false") == []
    with pytest.raises(ArgumentError, match="startingOffsets says 4"):
        stream(startingoffsets=beyond).initialOffset()
    allowed = stream(startingoffsets=beyond, failondataloss="false")
    assert allowed.initialOffset() == offset(3, cluster.log_id())


def test_an_end_before_what_is_left_of_the_log_is_refused_unless_loss_is_allowed(cluster: Stand) -> None:
    cluster.write(b"a", b"b")
    cluster.write(b"c")
    cluster.loop.call(cluster.logs.truncate(LOG, 2))
    with pytest.raises(OffsetTruncated, match="all up to 1 was truncated"):
        batch(endingoffsets=f'{{"{LOG}": 1}}')
    assert batch(endingoffsets=f'{{"{LOG}": 1}}', failondataloss="false") == []


def test_a_start_after_the_end_plans_nothing(cluster: Stand) -> None:
    cluster.write(b"a", b"b", b"c")
    assert plan_log_parts(cluster.access, {LOG: 3}, {LOG: 1}, 10) == []
    assert stream().partitions({"v": 1, "logs": {LOG: 3}}, {"v": 1, "logs": {LOG: 1}}) == []


def test_truncated_records_are_an_error_unless_loss_is_allowed(cluster: Stand) -> None:
    cluster.write(b"a", b"b")
    cluster.write(b"c")
    cluster.loop.call(cluster.logs.truncate(LOG, 2))
    at_zero = f'{{"{LOG}": 0}}'
    with pytest.raises(OffsetTruncated, match="failOnDataLoss=false"):
        batch(startingoffsets=at_zero)
    assert batch(startingoffsets=at_zero, failondataloss="false") == [(2, 3)]
    start, end = {"v": 1, "logs": {LOG: 1}}, {"v": 1, "logs": {LOG: 3}}
    with pytest.raises(OffsetTruncated, match="failOnDataLoss=false"):
        stream().partitions(start, end)
    (part,) = stream(failondataloss="false").partitions(start, end)
    assert part.value == (LOG, 2, 3)


def test_the_first_offset_of_a_stream_stays_what_it_was(cluster: Stand) -> None:
    cluster.write(b"a")
    reader = stream()
    assert reader.initialOffset() == offset(1, cluster.log_id())
    cluster.write(b"b")
    assert reader.initialOffset() == offset(1, cluster.log_id())


def test_a_stream_that_begins_at_the_latest_offset_keeps_that_beginning(cluster: Stand) -> None:
    """Spark keeps no start of a first batch: were there records in it, a restart before its commit would begin behind them."""
    cluster.write(b"a")
    reader = stream()
    initial = reader.initialOffset()
    cluster.write(b"b", b"c")
    assert latest(reader, initial) == initial, "the first batch is empty and brings the beginning into the checkpoint"
    again = stream()
    assert ranges(again.partitions(again.initialOffset(), initial)) == []
    assert ranges(again.partitions(initial, latest(again, initial))) == [(1, 3)]


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


def test_a_log_that_joins_a_stream_is_read_from_its_first_record(cluster: Stand) -> None:
    cluster.write(b"a", b"b")
    reader = stream()
    assert latest(reader, {"v": 1, "logs": {}}) == begun(0, 2, cluster.log_id())
    assert ranges(reader.partitions({"v": 1, "logs": {}}, {"v": 1, "logs": {LOG: 2}})) == [(0, 2)]


def test_the_offset_of_an_older_release_is_read_and_gets_the_logs_id(cluster: Stand) -> None:
    cluster.write(b"a", b"b")
    reader = stream()
    assert latest(reader, offset(1)) == offset(2, cluster.log_id())
    assert ranges(reader.partitions(offset(1), offset(2, cluster.log_id()))) == [(1, 2)]
    assert ranges(reader.partitions(offset(0), offset(1))) == [(0, 1)], "a batch that the older release had planned"


@pytest.mark.parametrize("records", [1, 3, 5])
def test_a_log_that_is_made_again_ends_the_stream_however_long_it_is(cluster: Stand, records: int) -> None:
    cluster.write(b"a", b"b", b"c")
    stands = offset(3, cluster.log_id())
    cluster.make_again()
    cluster.write(*([b"x"] * records))
    with pytest.raises(LogReplaced, match=r"deleted and created again: the checkpoint is at offset 3 .*failOnDataLoss=false"):
        latest(stream(), stands)


@pytest.mark.parametrize("records", [1, 3, 5])
def test_a_log_that_is_made_again_is_read_from_its_beginning_where_loss_is_allowed(
    cluster: Stand, records: int, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.write(b"a", b"b", b"c")
    stands = offset(3, cluster.log_id())
    cluster.make_again()
    cluster.write(*([b"x"] * records))
    reader = stream(failondataloss="false")
    end = latest(reader, stands)
    assert end == begun(0, records, cluster.log_id())
    assert "was deleted and created again" in caplog.text
    assert ranges(reader.partitions(stands, end)) == [(0, records)]
    assert ranges(stream().partitions(stands, end)) == [(0, records)], "what was decided is planned again as it was"


def test_a_log_that_ends_before_the_offset_of_an_older_release_ends_the_stream(cluster: Stand) -> None:
    cluster.write(b"a", b"b")
    with pytest.raises(LogReplaced, match="ends at offset 2, the stream is at 7"):
        latest(stream(), offset(7))
    reader = stream(failondataloss="false")
    end = latest(reader, offset(7))
    assert end == begun(0, 2, cluster.log_id())
    assert ranges(reader.partitions(offset(7), end)) == [(0, 2)]


def test_a_log_that_has_lost_its_last_records_ends_the_stream(cluster: Stand) -> None:
    cluster.write(b"a", b"b")
    stands = offset(7, cluster.log_id())
    with pytest.raises(LogReplaced, match="ends at offset 2, the stream is at 7"):
        latest(stream(), stands)
    reader = stream(failondataloss="false")
    end = latest(reader, stands)
    assert end == begun(2, 2, cluster.log_id()), "the log is the same: what it holds was read"
    assert reader.partitions(stands, end) == []


def test_a_batch_that_was_planned_on_another_log_is_not_read_from_the_new_one(cluster: Stand, caplog: pytest.LogCaptureFixture) -> None:
    cluster.write(b"a", b"b", b"c")
    start, end = offset(1, cluster.log_id()), offset(3, cluster.log_id())
    cluster.make_again()
    cluster.write(*([b"x"] * 4))
    with pytest.raises(LogReplaced, match="deleted and created again"):
        stream().partitions(start, end)
    reader = stream(failondataloss="false")
    assert reader.partitions(start, end) == []
    assert "deleted and created again" in caplog.text
    assert ranges(reader.partitions(end, latest(reader, end))) == [(0, 4)]


def test_a_batch_of_a_log_that_is_gone_is_lost(cluster: Stand) -> None:
    cluster.write(b"a")
    start, end = offset(0, cluster.log_id()), offset(1, cluster.log_id())
    cluster.loop.call(cluster.logs.delete(LOG))
    with pytest.raises(LogReplaced, match="there is none of this name now"):
        stream().partitions(start, end)
    reader = stream(failondataloss="false")
    assert reader.partitions(start, end) == []
    with pytest.raises(NoSuchLog, match=LOG):
        latest(reader, end)


def test_a_log_that_is_made_again_while_it_is_planned_is_noticed(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.write(b"a", b"b")
    start, end = offset(0, cluster.log_id()), offset(2, cluster.log_id())
    plan = LogAccess.plan

    def plan_another(self: LogAccess, *args: Any, **named: Any) -> Any:
        cluster.make_again()
        cluster.write(b"x", b"y")
        return plan(self, *args, **named)

    monkeypatch.setattr(LogAccess, "plan", plan_another)
    with pytest.raises(LogReplaced, match="while a batch of it was planned"):
        stream().partitions(start, end)


def test_a_server_that_is_behind_does_not_end_a_stream(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.write(b"a", b"b")
    stale = cluster.access.state(LOG)
    cluster.make_again()
    cluster.write(*([b"x"] * 3))
    now = offset(3, cluster.log_id())
    monkeypatch.setattr(LogAccess, "synced_states", lambda self, names, matches: {LOG: stale})
    assert latest(stream(), now) == now


def test_bookies_that_know_less_are_given_time_to_learn_what_was_confirmed(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = cluster.loop.call(cluster.logs.writer(LOG, owner="w"))
    for value in (b"a", b"b", b"c"):
        cluster.loop.call(writer.append_entry([value]))
    cluster.loop.call(writer.noop())
    stands, end_offset, asked = offset(3, cluster.log_id()), Logs.end_offset, []

    async def end_that_lags(self: Logs, name: str) -> int:
        asked.append(name)
        return 1 if len(asked) < 4 else await end_offset(self, name)

    monkeypatch.setattr(Logs, "end_offset", end_that_lags)
    assert latest(stream(), stands) == stands
    cluster.loop.call(writer.close())


def test_a_log_that_is_taken_out_of_the_subscription_is_refused_and_its_position_kept(
    cluster: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.loop.call(cluster.logs.create("other", LogSettings()))
    cluster.write(b"a", b"b")
    cluster.write(*([b"o"] * 5), log="other")
    ids = {LOG: cluster.log_id(), "other": cluster.log_id("other")}
    stands = {"v": 2, "ids": ids, "logs": {LOG: 1, "other": 3}}
    with pytest.raises(ConfigError, match=r"log 'other' at offset 3, and the options do not name it"):
        latest(stream(), stands)
    end = latest(stream(failondataloss="false"), stands)
    assert end == {"v": 2, "ids": ids, "left": {"other": 3}, "logs": {LOG: 2}}
    assert "do not name it" in caplog.text
    assert ranges(stream().partitions(stands, end)) == [(1, 2)]
    assert latest(stream(), end) == end, "it was said once"

    both = LogStreamReader(log_read_options({**URI, "subscribe": f"{LOG},other"}), None)  # type: ignore[arg-type]
    back = latest(both, end)
    assert back == {"v": 2, "ids": ids, "logs": {LOG: 2, "other": 5}}
    assert ranges(both.partitions(end, back)) == [(3, 5)], "it goes on where it was"


def test_another_log_with_the_same_checkpoint_is_refused(cluster: Stand) -> None:
    cluster.loop.call(cluster.logs.create("other", LogSettings()))
    cluster.write(b"a", b"b")
    stands = {"v": 2, "ids": {"other": cluster.log_id("other")}, "logs": {"other": 0}}
    with pytest.raises(ConfigError, match="log 'other' at offset 0, and the options do not name it"):
        latest(stream(), stands)


def test_a_planned_batch_of_a_log_that_is_not_named_any_more_is_refused_or_read_as_planned(cluster: Stand) -> None:
    cluster.loop.call(cluster.logs.create("other", LogSettings()))
    cluster.write(*([b"o"] * 5), log="other")
    start, end = {"v": 1, "logs": {LOG: 0, "other": 1}}, {"v": 1, "logs": {LOG: 0, "other": 4}}
    with pytest.raises(ConfigError, match="do not name it"):
        stream().partitions(start, end)
    assert ranges(stream(failondataloss="false").partitions(start, end)) == [(1, 4)]


def test_an_available_now_stream_ends_although_its_first_look_was_behind(cluster: Stand) -> None:
    """The log was made again before the run, and grows all the time: the second, certain look is where the run ends."""
    cluster.write(b"a", b"b")
    stands = offset(2, cluster.log_id())
    cluster.make_again()
    cluster.write(b"x")
    reader = stream(failondataloss="false")
    reader.prepareForTriggerAvailableNow()
    cluster.write(b"y")
    end = latest(reader, stands)
    cluster.write(b"z")
    assert latest(reader, end) == end


def test_an_available_now_stream_from_the_latest_offset_begins_where_it_ends(cluster: Stand) -> None:
    cluster.write(b"a")
    reader = stream()
    reader.prepareForTriggerAvailableNow()
    cluster.write(b"b")
    initial = reader.initialOffset()
    assert initial["logs"] == {LOG: 1}
    assert latest(reader, initial)["logs"] == latest(reader, latest(reader, initial))["logs"] == {LOG: 1}


@pytest.mark.parametrize("how", ["batch", "available now", "beginning", "further"])
def test_what_was_acknowledged_before_is_read_though_a_server_is_behind(how: str, cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has published; the metadata server of this one has not heard of it yet, and hears with the next sync."""
    cluster.write(b"a")
    old, store = cluster.loop.call(cluster.logs.store.read(LOG)), HeadStore.read
    cluster.write(b"b")
    synced = False

    async def behind(self: HeadStore, name: str, **named: bool) -> Any:
        return await store(self, name, **named) if synced else old

    async def sync(path: str) -> None:
        nonlocal synced
        synced = True

    monkeypatch.setattr(HeadStore, "read", behind)
    monkeypatch.setattr(cluster.logs.store.tree, "sync", sync)
    if how == "batch":
        assert batch() == [(0, 2)]
    elif how == "beginning":
        assert stream().initialOffset()["logs"] == {LOG: 2}
    elif how == "further":
        assert latest(stream(), offset(1))["logs"] == {LOG: 2}
    else:
        reader = stream()
        reader.prepareForTriggerAvailableNow()
        assert latest(reader, offset(0))["logs"] == {LOG: 2}


@pytest.mark.parametrize("allowed", ["true", "false"])
def test_a_log_that_is_deleted_while_a_loss_is_looked_into_is_named(cluster: Stand, allowed: str) -> None:
    cluster.write(b"a", b"b")
    stands = offset(2, cluster.log_id())
    cluster.make_again()
    reader = stream(failondataloss=allowed)
    reader.prepareForTriggerAvailableNow()
    cluster.loop.call(cluster.logs.delete(LOG))
    with pytest.raises(NoSuchLog, match=LOG):
        latest(reader, stands)
    with pytest.raises(NoSuchLog, match=LOG):
        cluster.access.decide_synced({LOG: LogState("", 0, 0)}, lambda states: ([states[LOG]], [DataLoss(LOG, ConfigError(""))]))


def truncate(cluster: Stand, first: int, log: str = LOG) -> None:
    cluster.loop.call(cluster.logs.truncate(log, first))


def test_a_first_batch_that_is_planned_again_begins_where_it_began(cluster: Stand) -> None:
    """Spark keeps no start of it, and the log has been truncated since: what the batch held is lost, and not in silence."""
    cluster.write(b"a", b"b")
    cluster.write(b"c")
    reader = stream(startingoffsets="earliest")
    end = latest(reader, reader.initialOffset())
    assert end == begun(0, 3, cluster.log_id())
    truncate(cluster, 2)
    again = stream(startingoffsets="earliest")
    with pytest.raises(OffsetTruncated, match="begins at offset 2, the stream is at 0"):
        again.partitions(again.initialOffset(), end)
    again = stream(startingoffsets="earliest", failondataloss="false")
    assert ranges(again.partitions(again.initialOffset(), end)) == [(2, 3)]
    cluster.write(b"d")
    assert latest(stream(), end) == offset(4, cluster.log_id())


def test_nothing_new_is_the_offset_as_it_stands(cluster: Stand) -> None:
    """Spark compares texts: another one would be a batch."""
    cluster.write(b"a", b"b")
    reader = stream(startingoffsets="earliest")
    end = latest(reader, reader.initialOffset())
    assert "begun" in end
    assert latest(reader, end) == latest(stream(), end) == end


@pytest.mark.parametrize("how", ["joined", "made again"])
def test_a_batch_with_which_a_log_begins_is_planned_again_as_it_was(cluster: Stand, how: str) -> None:
    other = cluster.loop.call(cluster.logs.create("other", LogSettings())).log_id
    stands = {"v": 2, "ids": {"other": other}, "logs": {"other": 0}}
    if how == "made again":
        cluster.write(b"x")
        stands = {"v": 2, "ids": {"other": other, LOG: cluster.log_id()}, "logs": {"other": 0, LOG: 1}}
        cluster.make_again()
    cluster.write(b"a", b"b")
    cluster.write(b"c")

    def both(allowed: str) -> LogStreamReader:
        given = {**URI, "subscribe": f"{LOG},other", "failondataloss": allowed}
        return LogStreamReader(log_read_options(given), None)  # type: ignore[arg-type]

    end = latest(both("false"), stands)
    assert (end["begun"], end["logs"]) == ({LOG: 0}, {LOG: 3, "other": 0})
    assert ranges(both("true").partitions(stands, end)) == [(0, 3)]
    truncate(cluster, 2)
    with pytest.raises(OffsetTruncated, match="begins at offset 2, the stream is at 0"):
        both("true").partitions(stands, end)
    assert ranges(both("false").partitions(stands, end)) == [(2, 3)]


def lose(cluster: Stand, ledger_id: int) -> None:
    """Delete the ledger of a segment by hand, and let the log go on without it."""
    client: Any = cluster.logs.client
    client.trash_period_s = 0.0
    cluster.loop.call(client.delete(ledger_id))
    cluster.loop.call(cluster.logs.repair(LOG))


def offsets_of(cluster: Stand, parts: Any) -> list[int]:
    entries = [entry for part in parts for entry in part.entries(cluster.access)]
    return [entry.first_offset + slot for entry in entries for slot in range(entry.low, entry.high)]


def test_records_that_are_lost_with_their_ledger_are_passed_over_where_loss_is_allowed(
    cluster: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    for value in (b"a", b"b", b"c"):
        cluster.write(value, value)
    lose(cluster, cluster.loop.call(cluster.logs.segments(LOG))[1].ledger_id)
    complaint = r"offsets 2 to 3 of log 'events' are lost with their ledger\. Set failOnDataLoss=false to read on at 4"
    with pytest.raises(OffsetGap, match=complaint):
        batch()
    assert batch(failondataloss="false", recordsperpartition="2") == [(0, 2), (4, 6)]
    assert batch(failondataloss="false", startingoffsets=f'{{"{LOG}": 3}}') == [(4, 6)]
    assert "are lost with their ledger" in caplog.text
    assert batch(startingoffsets=f'{{"{LOG}": 4}}') == [(4, 6)]
    start, end = offset(1, cluster.log_id()), offset(6, cluster.log_id())
    with pytest.raises(OffsetGap, match=complaint):
        stream().partitions(start, end)
    planned = stream(failondataloss="false", recordsperpartition="2").partitions(start, end)
    assert offsets_of(cluster, planned) == [1, 4, 5]


@pytest.mark.parametrize("limit", ["maxoffsetspertrigger", "maxbytespertrigger"])
def test_a_limited_stream_does_not_count_what_is_lost(cluster: Stand, limit: str) -> None:
    """The hole that a lost open segment leaves has as many offsets as the segment can have held records."""
    cluster.write(b"a", b"b")
    writer = cluster.loop.call(cluster.logs.writer(LOG, owner="dies"))
    cluster.loop.call(writer.append_entry([b"c"]))
    cluster.loop.call(writer.abandon())
    lose(cluster, writer.ledger_id)
    cluster.write(b"d", b"e")
    goes_on = cluster.access.state(LOG).end - 2
    reader = stream(**{limit: "1"}, failondataloss="false")
    stands, batches = offset(0, cluster.log_id()), 0
    delivered: list[int] = []
    while (end := latest(reader, stands)) != stands:
        batches += 1
        assert batches < 10
        delivered += offsets_of(cluster, reader.partitions(stands, end))
        stands = end
    assert delivered == [0, 1, goes_on, goes_on + 1]


def test_a_batch_of_a_log_that_has_lost_its_last_records_holds_those_that_are_there(cluster: Stand) -> None:
    cluster.write(b"a", b"b", b"c")
    start, end = offset(1, cluster.log_id()), offset(7, cluster.log_id())
    with pytest.raises(LogReplaced, match="ends at offset 3, the stream is at 7"):
        stream().partitions(start, end)
    reader = stream(failondataloss="false")
    assert ranges(reader.partitions(start, end)) == [(1, 3)]
    assert latest(reader, end)["logs"] == {LOG: 3}
    assert reader.partitions(offset(5, cluster.log_id()), end) == []


def test_a_batch_of_an_older_release_on_a_log_that_is_shorter_now_holds_nothing(cluster: Stand) -> None:
    """Most likely it is another log, which is read from its beginning with the next batch."""
    cluster.write(b"a", b"b", b"c")
    reader = stream(failondataloss="false")
    assert reader.partitions(offset(1), offset(7)) == []
    assert ranges(reader.partitions(offset(7), latest(reader, offset(7)))) == [(0, 3)]
