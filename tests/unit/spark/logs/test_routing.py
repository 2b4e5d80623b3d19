"""Rows that go to the logs that their column `log` names."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types

from tests.unit.spark.micro_batches import Task, use_tasks
from tests.unit.spark.stand import LOG, SCHEMA, Stand, ledgers_of, stand
from triplicate.errors import ConfigError, LogReserved, NoSuchLog, TriplicateError
from triplicate.log import Logs, LogSettings, PublishResult, Purpose, PurposeKind
from triplicate.spark.cluster.arrow import record_batches
from triplicate.spark.logs import routing
from triplicate.spark.logs.log_source import TriplicateDataSource
from triplicate.spark.logs.writing import Staged

NAMED = types.StructType([types.StructField("LOG", types.StringType()), types.StructField("value", types.BinaryType())])
LOGS = ("a", "b", "c")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with stand(monkeypatch) as made:
        for log in LOGS:
            made.loop.call(made.logs.create(log, LogSettings()))
        yield made


def writer(schema: types.StructType = NAMED, **options: str) -> Any:
    return TriplicateDataSource({"metadataserviceuri": "memory:", **options}).writer(schema, False)


def named(*rows: tuple[str | None, bytes], log: str = "LOG") -> Iterator[pa.RecordBatch]:
    """The argument that Spark gives to a task: a batch of rows (log, value)."""
    return iter([pa.record_batch({log: pa.array([name for name, _ in rows]), "value": pa.array([value for _, value in rows])})])


def held(cluster: Stand, log: str) -> list[bytes]:
    first, end = cluster.access.bounds(log)
    parts = cluster.access.plan(log, first, end, 1_000)
    batches = [batch for part in parts for batch in record_batches(log, cluster.access.entries(part), SCHEMA)]
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def run(publisher: Any, *tasks: Iterator[pa.RecordBatch]) -> list[Staged]:
    messages = []
    for place, rows in enumerate(tasks):
        message = pickle.loads(pickle.dumps(publisher.write(rows)))
        message.partition = place
        messages.append(message)
    return messages


def test_each_row_goes_to_its_log_in_the_order_of_rows(cluster: Stand) -> None:
    publisher = writer()
    messages = run(publisher, named(("b", b"1"), ("a", b"2"), ("b", b"3"), ("a", b"4")), named(("c", b"5"), ("a", b"6")), iter([]))
    assert [held(cluster, log) for log in LOGS] == [[], [], []]
    publisher.commit([*messages, None])
    assert [held(cluster, log) for log in LOGS] == [[b"2", b"4", b"6"], [b"1", b"3"], [b"5"]]


def test_the_option_comes_before_the_column_as_in_kafkas_sink(cluster: Stand) -> None:
    publisher = writer(log="c")
    publisher.commit(run(publisher, named(("a", b"1"), (None, b"2"))))
    assert [held(cluster, log) for log in LOGS] == [[], [], [b"1", b"2"]]


def test_a_write_without_a_log_is_refused_before_a_task_runs(cluster: Stand) -> None:
    with pytest.raises(ConfigError, match=r"'log' is missing; add .*or write a column 'log'"):
        writer(types.StructType([types.StructField("value", types.BinaryType())]))
    number = types.StructType([types.StructField("log", types.IntegerType()), types.StructField("value", types.BinaryType())])
    with pytest.raises(ConfigError, match="column 'log' must be string"):
        writer(number)


def test_a_row_without_a_log_or_for_one_that_cannot_be_written_fails_its_task(cluster: Stand) -> None:
    cluster.loop.call(cluster.logs.create("shop", LogSettings(), purpose=Purpose(PurposeKind.DATABASE, "shop")))
    before = set(cluster.bookies.ledgers)
    with pytest.raises(ConfigError, match="column 'log' is null in a row"):
        writer().write(named(("a", b"1"), (None, b"2")))
    for name, kind in (("nowhere", NoSuchLog), ("shop", LogReserved)):
        with pytest.raises(kind, match=name):
            writer().write(named(("a", b"1"), (name, b"2")))
    assert set(cluster.bookies.ledgers) == before, "the ledgers of the other logs are deleted"


def test_nothing_is_published_if_one_of_the_logs_is_gone(cluster: Stand) -> None:
    publisher = writer()
    messages = run(publisher, named(("a", b"1"), ("b", b"2"), ("c", b"3")))
    cluster.loop.call(cluster.logs.delete("c"))
    with pytest.raises(NoSuchLog, match="'c'"):
        publisher.commit([*messages])
    assert (held(cluster, "a"), held(cluster, "b")) == ([], [])
    publisher.abort([*messages])
    assert ledgers_of(cluster, [ledger.ledger_id for ledger in messages[0].ledgers]) == []


def test_a_batch_that_was_published_to_some_of_its_logs_is_completed(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver dies between two logs, or one refuses: Spark aborts, and the same batch comes again."""
    publish = Logs.publish

    async def fails(self: Logs, name: str, *args: Any, **given: Any) -> PublishResult:
        if name == "b":
            raise TriplicateError("the driver dies")
        return await publish(self, name, *args, **given)

    use_tasks(monkeypatch)
    rows = (("a", b"1"), ("b", b"2"), ("c", b"3"))
    for attempt in range(2):
        monkeypatch.setattr(Logs, "publish", publish if attempt else fails)
        stream = TriplicateDataSource({"metadataserviceuri": "memory:"}).streamWriter(NAMED, False)
        Task.running = Task(0, attempt, 7)
        messages = run(stream, named(*rows))
        Task.running = None
        if attempt == 0:
            with pytest.raises(TriplicateError, match="the driver dies"):
                stream.commit([*messages], 7)
            stream.abort([*messages], 7)
            assert [held(cluster, log) for log in LOGS] == [[b"1"], [], []]
        else:
            stream.commit([*messages], 7)
    assert [held(cluster, log) for log in LOGS] == [[b"1"], [b"2"], [b"3"]]
    assert all(
        len(ledgers_of(cluster, [ledger.ledger_id])) == (log != "a")
        for log, ledger in zip(messages[0].logs, messages[0].ledgers, strict=True)
    )


def test_a_task_keeps_few_ledgers_open(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "OPEN_STAGING_LEDGERS", 2)
    publisher = writer()
    rows = [named((log, b"%d" % number)) for number, log in enumerate(["a", "b", "a", "c", "b", "a"])]
    (message,) = run(publisher, (batch for part in rows for batch in part))
    assert message.logs == ("b", "a", "c", "b", "a"), "the one that was used least recently is sealed"
    publisher.commit([message])
    assert [held(cluster, log) for log in LOGS] == [[b"0", b"2", b"5"], [b"1", b"4"], [b"3"]]
    assert cluster.access.bounds(LOG) == (0, 0)


def test_a_task_that_fails_deletes_what_it_has_sealed(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "OPEN_STAGING_LEDGERS", 1)
    before = set(cluster.bookies.ledgers)
    with pytest.raises(NoSuchLog, match="nowhere"):
        writer().write(batch for part in (named(("a", b"1")), named(("b", b"2")), named(("nowhere", b"3"))) for batch in part)
    assert set(cluster.bookies.ledgers) == before


def test_rows_of_a_table_do_not_choose_their_log(cluster: Stand) -> None:
    """INSERT INTO t SELECT * FROM u: the rows have the column log of u, and the log of t is meant."""
    given = {"metadataserviceuri": "memory:", "log": LOG}
    created = TriplicateDataSource({"provider": "triplicate", **given, **{f"option.{key}": value for key, value in given.items()}}).schema()
    assert isinstance(created, types.StructType)
    table: Any = TriplicateDataSource({}).writer(created, False)
    with pytest.raises(ConfigError, match="column 'log' is filled by the log"):
        table.write(named(("a", b"1"), log="log"))
    assert held(cluster, "a") == []
