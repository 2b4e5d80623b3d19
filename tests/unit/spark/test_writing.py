"""Staging, publishing and aborting, without Spark: what a task, a commit and an abort do to a log."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tests.unit.spark.stand import LOG, Stand, ledgers_of, rows, stand, write_options
from triplicate.errors import ConnectionLost, LogOwned
from triplicate.spark import writing
from triplicate.spark.access import LogAccess
from triplicate.spark.writing import BatchPublisher, Staged, StreamPublisher


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


def test_publishing_into_a_log_with_a_living_writer_is_refused_by_name(cluster: Stand) -> None:
    writer = cluster.loop.call(cluster.logs.writer(LOG, owner="somebody"))
    publisher = BatchPublisher(write_options())
    messages = stage_all(publisher, (b"a",))
    with pytest.raises(LogOwned, match="somebody"):
        publisher.commit([*messages])
    publisher.abort([*messages])
    cluster.loop.call(writer.close())
    assert cluster.values() == []


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
