"""Staging, publishing and aborting, without Spark: what a task, a commit and an abort do to a log."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from tests.unit.spark.stand import LOG, SCHEMA, Stand, ledgers_of, rows, stand, write_options
from triplicate.errors import ArgumentError, ConnectionLost, CorruptionError, LogOwned
from triplicate.log.core.join_plan import JOIN_LEAST
from triplicate.log.publishing.request_server import RequestServer
from triplicate.spark.cluster.access import LogAccess
from triplicate.spark.cluster.arrow import record_batches
from triplicate.spark.logs import writing
from triplicate.spark.logs.admission import admit
from triplicate.spark.logs.reading import LogPart, plan_log_parts
from triplicate.spark.logs.writing import BatchPublisher, Staged, StreamPublisher


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with stand(monkeypatch) as made:
        yield made


def stage_all(publisher: BatchPublisher, *parts: tuple[bytes, ...]) -> list[Staged]:
    """Run one task for each part and bring its message to the driver, as Spark does."""
    messages = []
    for place, values in enumerate(parts):
        message = publisher.write(rows(*values))
        assert isinstance(message, Staged)
        message.partition = place
        messages.append(pickle.loads(pickle.dumps(message)))
    return messages


def ids_of(messages: list[Staged]) -> list[int]:
    return [ledger.ledger_id for message in messages for ledger in message.ledgers]


def test_committed_records_are_in_the_log_in_the_order_of_partitions(cluster: Stand) -> None:
    publisher = BatchPublisher(write_options())
    messages = stage_all(publisher, (b"a", b"b"), (b"c",), ())
    assert cluster.values() == []
    publisher.commit([messages[2], messages[1], None, messages[0]])
    assert cluster.values() == [b"a", b"b", b"c"]


def test_a_version_that_runs_again_adds_nothing_and_leaves_nothing(cluster: Stand, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        assert "adds nothing" not in caplog.text
        publisher = BatchPublisher(write_options("ingest", 1))
        messages = stage_all(publisher, (b"a",), (b"b",))
        publisher.commit([*messages])
    said = "batch 1 of application 'ingest' adds nothing to log 'events': its batch 1, which ends at offset 2, is there"
    assert f"{said}. 2 records were discarded" in caplog.text
    assert cluster.values() == [b"a", b"b"]
    assert ledgers_of(cluster, ids_of(messages)) == []


def test_without_an_application_every_run_adds_its_records(cluster: Stand) -> None:
    for _ in range(2):
        publisher = BatchPublisher(write_options())
        publisher.commit([*stage_all(publisher, (b"a",))])
    assert cluster.values() == [b"a", b"a"]


def test_the_next_version_is_added(cluster: Stand) -> None:
    for version in (1, 2):
        publisher = BatchPublisher(write_options("ingest", version))
        publisher.commit([*stage_all(publisher, (b"%d" % version,))])
    assert cluster.values() == [b"1", b"2"]


def test_abort_after_a_commit_that_raised_keeps_what_is_published(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher = BatchPublisher(write_options("ingest", 1))
    messages = stage_all(publisher, (b"a",), (b"b",))
    publish = LogAccess.publish

    def publish_and_fail(self: LogAccess, *args: object, **named: object) -> bool:
        publish(self, *args, **named)  # type: ignore[arg-type]
        raise ConnectionLost("the answer was lost")

    with monkeypatch.context() as patched:
        patched.setattr(LogAccess, "publish", publish_and_fail)
        with pytest.raises(ConnectionLost):
            publisher.commit([*messages])
    publisher.abort([*messages])
    assert cluster.values() == [b"a", b"b"]


def test_abort_of_an_unpublished_job_deletes_what_its_tasks_staged(cluster: Stand) -> None:
    publisher = BatchPublisher(write_options("ingest", 1))
    messages = stage_all(publisher, (b"a",), (b"b",))
    publisher.abort([messages[0], None, messages[1]])
    assert cluster.values() == []
    assert ledgers_of(cluster, ids_of(messages)) == []


def test_a_task_without_records_makes_no_ledger(cluster: Stand) -> None:
    before = set(cluster.bookies.ledgers)
    message = BatchPublisher(write_options()).write(iter([pa.record_batch({"value": pa.array([], pa.binary())})]))
    assert isinstance(message, Staged)
    assert message.ledgers == ()
    assert set(cluster.bookies.ledgers) == before


def test_a_task_that_fails_deletes_its_ledger(cluster: Stand) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from rows(b"a")
        raise ValueError("the job before it failed")

    before = set(cluster.bookies.ledgers)
    with pytest.raises(ValueError, match="the job before"):
        BatchPublisher(write_options()).write(broken())
    assert set(cluster.bookies.ledgers) == before
    assert len(cluster.bookies.deleted) == 1


def test_staged_ledgers_say_where_they_come_from(cluster: Stand) -> None:
    (message,) = stage_all(BatchPublisher(write_options("ingest", 7)), (b"a",))
    custom = cluster.bookies.ledgers[message.ledgers[0].ledger_id].metadata.custom
    assert custom["component"] == b"staging"
    assert (custom["log"], custom["app"], custom["batch"]) == (LOG.encode(), b"ingest", b"7")


def test_a_job_publishes_beside_a_living_writer(cluster: Stand) -> None:
    writer = cluster.loop.call(cluster.logs.writer(LOG, owner="somebody"))
    assert cluster.loop.call(writer.append(b"before")) == 0
    for _ in range(2):
        publisher = BatchPublisher(write_options("ingest", 1))
        publisher.commit([*stage_all(publisher, (b"a",), (b"b",))])
    assert cluster.loop.call(writer.append(b"after")) == 3
    cluster.loop.call(writer.close())
    assert cluster.values() == [b"before", b"a", b"b", b"after"]


def test_a_writer_that_lists_nothing_for_others_is_named(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    async def deaf(self: RequestServer, roll: object) -> None:
        return

    monkeypatch.setattr(RequestServer, "follow", deaf)
    cluster.logs.settings = cluster.access._logs.settings = replace(cluster.logs.settings, publish_wait_s=0.1)
    writer = cluster.loop.call(cluster.logs.writer(LOG, owner="somebody"))
    publisher = BatchPublisher(write_options())
    messages = stage_all(publisher, *[(b"a",)] * JOIN_LEAST)
    with pytest.raises(LogOwned, match="somebody"):
        publisher.commit([*messages])
    publisher.abort([*messages])
    cluster.loop.call(writer.close())
    assert cluster.values() == []
    assert cluster.bookies.ledgers == {}


def tiny_parts(count: int) -> list[tuple[bytes, ...]]:
    return [tuple(b"%d %d" % (part, number) for number in range(5)) for part in range(count)]


def test_many_small_ledgers_are_joined_and_read_by_few_tasks(cluster: Stand) -> None:
    parts = tiny_parts(200)
    publisher = BatchPublisher(write_options("ingest", 1))
    messages = stage_all(publisher, *parts)
    publisher.commit([*messages])
    assert cluster.values() == [value for part in parts for value in part]
    segments = cluster.loop.call(cluster.logs.segments(LOG))
    assert [segment.records for segment in segments] == [1000]
    assert sorted(cluster.bookies.ledgers) == [segment.ledger_id for segment in segments]
    custom = cluster.bookies.ledgers[segments[0].ledger_id].metadata.custom
    assert (custom["joined"], custom["component"], custom["app"], custom["batch"]) == (b"200", b"staging", b"ingest", b"1")
    assert len(plan_log_parts(cluster.access, {LOG: 0}, {LOG: 1000}, 250_000)) == 1


def test_joined_ledgers_stand_where_their_parts_stood(cluster: Stand) -> None:
    parts = tiny_parts(20)
    parts[10] = (random.Random(0).randbytes(9000),)
    publisher = BatchPublisher(replace(write_options(), target_ledger_bytes=10_500))
    publisher.commit([*stage_all(publisher, *parts)])
    assert cluster.values() == [value for part in parts for value in part]
    assert [segment.records for segment in cluster.loop.call(cluster.logs.segments(LOG))] == [50, 1, 45]


def test_ledgers_are_joined_to_about_the_size_asked_for(cluster: Stand) -> None:
    values = [random.Random(part).randbytes(1000) for part in range(40)]
    publisher = BatchPublisher(replace(write_options(), target_ledger_bytes=10_500))
    publisher.commit([*stage_all(publisher, *[(value,) for value in values])])
    assert cluster.values() == values
    segments = cluster.loop.call(cluster.logs.segments(LOG))
    assert 4 <= len(segments) <= 5
    assert all(segment.size_bytes <= 10_500 for segment in segments)


def test_with_a_target_of_zero_every_task_keeps_its_ledger_and_few_tasks_read_them(cluster: Stand) -> None:
    parts = tiny_parts(200)
    publisher = BatchPublisher(replace(write_options(), target_ledger_bytes=0))
    publisher.commit([*stage_all(publisher, *parts)])
    assert len(cluster.loop.call(cluster.logs.segments(LOG))) == 200
    (part,) = plan_log_parts(cluster.access, {LOG: 3}, {LOG: 1000}, 250_000)
    assert isinstance(part, LogPart)
    read = list(record_batches(LOG, part.entries(cluster.access), SCHEMA))
    assert [offset for batch in read for offset in batch["offset"].to_pylist()] == list(range(3, 1000))
    assert len(plan_log_parts(cluster.access, {LOG: 0}, {LOG: 1000}, 100)) == 10


def test_a_version_that_is_there_is_not_joined_again(cluster: Stand) -> None:
    publisher = BatchPublisher(write_options("ingest", 1))
    publisher.commit([*stage_all(publisher, (b"a",))])
    before = set(cluster.bookies.ledgers)
    made = cluster.bookies.next_id
    publisher.commit([*stage_all(publisher, *tiny_parts(20))])
    assert set(cluster.bookies.ledgers) == before
    assert cluster.bookies.next_id == made - 20


def test_when_joined_ledgers_cannot_be_written_the_tasks_own_are_published(cluster: Stand) -> None:
    parts = tiny_parts(20)
    publisher = BatchPublisher(write_options("ingest", 1))
    messages = stage_all(publisher, *parts)
    cluster.bookies.creatable = False
    publisher.commit([*messages])
    assert cluster.values() == [value for part in parts for value in part]
    assert sorted(cluster.bookies.ledgers) == sorted(ids_of(messages))


def test_a_ledger_that_lacks_records_is_not_joined_in_silence(cluster: Stand) -> None:
    publisher = BatchPublisher(write_options("ingest", 1))
    messages = stage_all(publisher, *tiny_parts(20))
    messages[7].ledgers = (replace(messages[7].ledgers[0], records=6),)
    with pytest.raises(CorruptionError, match="5 records; its task wrote 6"):
        publisher.commit([*messages])
    assert cluster.values() == []
    assert sorted(cluster.bookies.ledgers) == sorted(ids_of(messages))


def test_an_abort_after_a_joined_commit_that_raised_keeps_what_is_published(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher = BatchPublisher(write_options("ingest", 1))
    parts = tiny_parts(20)
    messages = stage_all(publisher, *parts)
    publish = LogAccess.publish

    def publish_and_fail(self: LogAccess, *args: object, **named: object) -> bool:
        publish(self, *args, **named)  # type: ignore[arg-type]
        raise ConnectionLost("the answer was lost")

    with monkeypatch.context() as patched:
        patched.setattr(LogAccess, "publish", publish_and_fail)
        with pytest.raises(ConnectionLost):
            publisher.commit([*messages])
    publisher.abort([*messages])
    assert cluster.values() == [value for part in parts for value in part]
    assert len(cluster.bookies.ledgers) == 1


def test_a_stream_batch_that_comes_again_adds_nothing(cluster: Stand) -> None:
    for attempt in range(2):
        publisher = StreamPublisher(write_options("query"))
        message = publisher.write(rows(b"a"))
        pickle.loads(pickle.dumps(StreamPublisher(write_options("query")))).commit([message], 4)
        assert cluster.values() == [b"a"], attempt


def test_a_streams_commit_takes_the_application_from_its_messages(cluster: Stand) -> None:
    staged = writing.stage(write_options(), "query-id", "query-id", 0, rows(b"a"))
    StreamPublisher(write_options()).commit([None, staged], 0)
    StreamPublisher(write_options()).commit([None, staged], 0)
    StreamPublisher(write_options()).commit([], 1)
    assert cluster.values() == [b"a"]
    state = cluster.loop.call(cluster.logs.last_batch(LOG, "query-id"))
    assert state is not None
    assert state.batch == 0


def test_an_abort_that_cannot_reach_the_cluster_does_not_hide_the_jobs_error(
    cluster: Stand, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    publisher = BatchPublisher(write_options("ingest", 1))
    messages = stage_all(publisher, (b"a",))

    def lost(self: LogAccess, *args: object) -> None:
        raise ConnectionLost("gone")

    monkeypatch.setattr(LogAccess, "discard", lost)
    publisher.abort([*messages])
    assert "gone" in caplog.text


def test_the_longest_name_of_an_application_publishes_and_a_longer_one_is_refused_before_the_tasks(cluster: Stand) -> None:
    longest = write_options("ü" * 128, 1)
    assert admit(longest) is None
    publisher = BatchPublisher(longest)
    publisher.commit([*stage_all(publisher, (b"a",))])
    assert cluster.values() == [b"a"]
    with pytest.raises(ArgumentError, match="the application's name has 257 bytes; at most 256"):
        admit(write_options("a" * 257, 1))
