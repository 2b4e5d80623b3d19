"""Writes into tables of real nodes, by the sink's own classes, without Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from tests.unit.spark.table_stand import TableStand, given, schema_of
from triplicate.errors import ConfigError, EnvironmentFault, OutcomeUnknown, SqlError
from triplicate.spark.cluster import table_changes
from triplicate.spark.tables.table_source import TableDataSource
from triplicate.spark.tables.table_writing import StagedRows


@pytest.fixture
def stand(shared: TableStand) -> TableStand:
    """Without the tables of the test before."""
    shared.clear()
    shared.must("create table t(id int primary key, v text, n int default 7)")
    return shared


def rows(*values: tuple[Any, ...], names: str = "id v", kinds: tuple[pa.DataType, ...] = (pa.int64(), pa.string())) -> pa.RecordBatch:
    columns = [
        pa.array(column, kind) for column, kind in zip(zip(*values, strict=True) if values else [()] * len(kinds), kinds, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=names.split())


def test_rows_of_all_tasks_are_there_and_nothing_is_left(stand: TableStand) -> None:
    stand.write(rows((2, "b"), (3, None)), rows(), rows((1, ""), (4, 'q"\n,')), table="T")
    assert stand.rows("select * from t order by id") == [(1, "", 7), (2, "b", 7), (3, None, 7), (4, 'q"\n,', 7)]
    assert stand.staged() == []
    stand.write(rows(), table="t")
    stand.write(rows((9, "only")), overwrite=True, table="t")
    assert stand.rows("select id from t") == [(9,)]
    stand.write(rows(), overwrite=True, table="t")
    assert stand.rows("select count(*) from t") == [(0,)]
    assert stand.rows("select 1 from pragma_table_list where name = 'spark_batches'") == []


def test_each_type_of_spark_is_stored_as_the_columns_type(stand: TableStand) -> None:
    stand.must(
        "create table ty(i int, f real, s text, o boolean, b bytea, d date, t timestamp, z timestamptz, n numeric(20,3), u uuid, k time)"
    )
    moment = datetime(2026, 11, 1, 10, 0, 0, 5)  # noqa: DTZ001
    kinds = (
        pa.int32(), pa.float32(), pa.string(), pa.bool_(), pa.binary(), pa.date32(), pa.timestamp("us"),
        pa.timestamp("us", "Europe/Berlin"), pa.decimal128(20, 3), pa.string(), pa.time64("us"),
    )  # fmt: skip
    uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    row = (1, 0.5, "é", True, b"\x00\xff", date(1999, 1, 2), moment, moment, Decimal("12345678901.125"), uuid, moment.time())
    batch = rows(row, (None,) * 11, names="i f s o b d t z n u k", kinds=kinds)
    writer = table_changes.copy_statement("ty", batch.schema.names, "insert")
    assert writer.startswith('COPY "ty" ("i", "f"')
    stand.write(batch.drop_columns(["k"]), table="ty")
    first, second = stand.rows("select i, f, s, o, b, d, t, z, n, u from ty")
    assert first[:7] == (1, 0.5, "é", True, b"\x00\xff", date(1999, 1, 2), moment)
    assert first[7] == moment.replace(tzinfo=UTC)
    assert first[8] == Decimal("12345678901.125")
    assert str(first[9]) == uuid
    assert second == (None,) * 10


def test_rows_are_changed_and_deleted_by_their_key(stand: TableStand) -> None:
    stand.must("insert into t values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
    stand.write(rows((1, "A"), (4, "D")), rows((4, "last")), table="t", action="upsert")
    assert stand.rows("select * from t order by id") == [(1, "A", 1), (2, "b", 2), (3, "c", 3), (4, "last", 7)]
    stand.write(rows((2, "ignored"), (99, None)), table="t", action="delete")
    assert stand.rows("select id from t order by id") == [(1,), (3,), (4,)]


def test_the_rows_of_a_change_feed_rebuild_the_table(stand: TableStand) -> None:
    """Of several changes of a row the last one counts, over the batches of rows of a task and over tasks."""
    kinds = (pa.int64(), pa.string(), pa.string(), pa.int64())

    def feed(*changes: tuple[int, str | None, str]) -> pa.RecordBatch:
        return rows(*((*change, 1) for change in changes), names="id v _change_type _commit_version", kinds=kinds)

    stand.must("insert into t values (1, 'a', 1), (2, 'b', 2)")
    stand.write(
        feed(
            (3, "c", "insert"),
            (3, "c2", "update_postimage"),
            (1, "a", "update_preimage"),
            (1, "a2", "update_postimage"),
            (2, None, "delete"),
        ),
        feed((3, None, "delete"), (2, "again", "insert"), (5, "x", "insert"), (5, None, "delete")),
        table="t",
        action="changes",
    )
    assert stand.rows("select * from t order by id") == [(1, "a2", 1), (2, "again", 7)]
    with pytest.raises(ConfigError, match="'_change_type' is 'rename_column' in a row"):
        stand.write(feed((1, None, "rename_column")), table="t", action="changes")
    with pytest.raises(ConfigError, match="'_change_type' is None in a row"):
        stand.write(feed((1, None, None)), table="t", action="changes")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="needs a column '_change_type'"):
        stand.write(rows((1, "a")), table="t", action="changes")
    assert stand.staged() == []


def test_a_batch_is_written_once_and_a_later_one_follows(stand: TableStand, caplog: pytest.LogCaptureFixture) -> None:
    stand.write(rows((1, "a")), table="t", txnAppId="ingest", txnVersion="5")
    stand.write(rows((2, "b")), table="t", txnAppId="ingest", txnVersion="5")
    stand.write(rows((3, "c")), table="t", txnAppId="ingest", txnVersion="4")
    assert "batch 5 of application 'ingest' changes nothing: table 't' has it" in caplog.text
    stand.write(rows((4, "d")), table="t", txnAppId="other", txnVersion="4")
    stand.write(rows((5, "e")), table="t", txnAppId="ingest", txnVersion="6")
    assert stand.rows("select id from t order by id") == [(1,), (4,), (5,)]
    assert stand.rows("select application, target, batch from spark_batches order by 1") == [("ingest", "t", 6), ("other", "t", 4)]
    stand.must("create table u(id int primary key)")
    stand.write(rows((1,), names="id", kinds=(pa.int64(),)), table="u", txnAppId="ingest", txnVersion="1")
    assert stand.rows("select id from u") == [(1,)]


def test_a_refused_row_leaves_nothing_of_its_batch(stand: TableStand) -> None:
    stand.must("insert into t values (2, 'there', 2)")
    with pytest.raises(SqlError, match=r'duplicate key value violates unique constraint "t_pkey"; Key .*; COPY t, line 2') as found:
        stand.write(rows((1, "a")), rows((2, "b")), table="t", txnAppId="app", txnVersion="1")
    assert found.value.sqlstate == "23505"
    assert stand.rows("select id from t") == [(2,)]
    assert stand.rows("select count(*) from spark_batches") == [(0,)]
    assert stand.staged() == []
    stand.write(rows((1, "a")), table="t", txnAppId="app", txnVersion="1")
    assert stand.rows("select count(*) from t") == [(2,)]


def test_what_cannot_succeed_is_refused_before_a_task_runs(stand: TableStand, monkeypatch: pytest.MonkeyPatch) -> None:
    stand.must("create table g(id int primary key, d int generated always as (id * 2) stored)", "create table nokey(id int, v text)")
    one = rows((1, "a"))
    with pytest.raises(ConfigError, match="has no table 'nope'"):
        stand.write(one, table="nope")
    with pytest.raises(ConfigError, match="table 't' has no column 'w'; it has 'id', 'v', 'n'"):
        stand.write(one.rename_columns(["id", "w"]), table="t")
    with pytest.raises(ConfigError, match="several columns 'ID'"):
        stand.write(one.rename_columns(["ID", "id"]), table="t")
    with pytest.raises(ConfigError, match=r"needs column 'id' of the primary key \(id\)"):
        stand.write(one.select(["v"]), table="t", action="upsert")
    with pytest.raises(ConfigError, match="'nokey' has no primary key, which action 'delete' needs"):
        stand.write(one, table="nokey", action="delete")
    with pytest.raises(ConfigError, match=r"column 'v' is array<bigint>, which no column of a table takes: write to_json\(v\)"):
        stand.write(rows((1, [1]), kinds=(pa.int64(), pa.list_(pa.int64()))), table="t")
    stand.write(rows((41, None), kinds=(pa.int64(), pa.null())), table="t")
    assert stand.rows("select v from t where id = 41") == [(None,)]
    with pytest.raises(ConfigError, match="column 'v' is binary, which goes into a column of type bytea only"):
        stand.write(rows((1, b"x"), kinds=(pa.int64(), pa.binary())), table="t")
    with pytest.raises(ConfigError, match="goes with action 'insert' only"):
        stand.write(one, overwrite=True, table="t", action="upsert")
    with pytest.raises(SqlError, match='column "d" is a generated column'):
        stand.write(rows((1, 2), names="id d", kinds=(pa.int64(), pa.int64())), table="g")
    assert stand.staged() == []


def test_the_table_of_batches_is_not_written(stand: TableStand) -> None:
    stand.must("insert into t values (1, 'a', 1)")
    stand.write(rows((2, "b")), table="t", txnAppId="app", txnVersion="1")
    with pytest.raises(ConfigError, match="table 'spark_batches' has the numbers of the batches that were written"):
        stand.write(rows((1, "a")), table="Spark_Batches")


def test_a_commit_whose_answer_is_lost_is_repeated_and_changes_the_table_once(stand: TableStand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_changes, "PAUSE_S", 0.0)
    execute = psycopg.Connection.execute
    lost: list[str] = []

    def losing(self: psycopg.Connection[Any], query: Any, *rest: Any, **named: Any) -> Any:
        cursor = execute(self, query, *rest, **named)
        if query == "COMMIT" and len(lost) < 2:
            lost.append(query)
            raise psycopg.OperationalError("the answer was lost")
        return cursor

    monkeypatch.setattr(psycopg.Connection, "execute", losing)
    stand.write(rows((1, "a")), table="t", txnAppId="app", txnVersion="1")
    assert len(lost) == 1
    assert stand.rows("select id from t") == [(1,)]
    with pytest.raises(OutcomeUnknown, match="broke during COMMIT: the answer was lost"):
        stand.write(rows((2, "b")), table="t")
    assert stand.rows("select id from t order by id") == [(1,), (2,)]


def test_a_transaction_whose_leader_is_gone_is_made_again(stand: TableStand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_changes, "PAUSE_S", 0.0)
    states = ["08006", "57P01", "25006", "40001"]
    write = psycopg.Copy.write

    def failing(self: psycopg.Copy, data: Any) -> None:
        write(self, data)
        if states:
            raise type("Lost", (psycopg.OperationalError,), {"sqlstate": states.pop(0)})("lost")

    monkeypatch.setattr(psycopg.Copy, "write", failing)
    stand.write(rows((1, "a"), (2, "b")), table="t")
    assert states == []
    assert stand.rows("select id from t order by id") == [(1,), (2,)]
    states[:] = ["08006"] * 10_000
    monkeypatch.setattr(table_changes, "COMMIT_LIMIT_S", 0.0)
    with pytest.raises(SqlError, match="table 't': lost"):
        stand.write(rows((3, "c")), table="t")
    assert stand.staged() == []


def test_a_table_whose_key_has_changed_is_not_written_by_the_new_one(stand: TableStand) -> None:
    first = {"table": "k", "action": "upsert", "txnAppId": "app"}
    stand.must("create table k(id int not null, v text not null, primary key (id))")
    stand.write(rows((1, "a")), overwrite=False, **first, txnVersion="1")
    source = TableDataSource(given({**first, "txnVersion": "2"}))
    writer = source.writer(schema_of(rows((2, "b")).schema), False)
    message = writer.write(iter([rows((1, "b"))]))
    stand.must("drop table k", "create table k(id int not null, v text not null, primary key (v))", "insert into k values (7, 'b')")
    with pytest.raises(ConfigError, match=r"was \(id\) when the write began, and is \(v\): rows would be changed by another key"):
        writer.commit([message])
    with pytest.raises(ConfigError, match=r"was \(id\) when batch 1 was written, and is \(v\): .*go on with a new txnAppId"):
        stand.write(rows((1, "b")), overwrite=False, **first, txnVersion="2")
    assert stand.rows("select * from k") == [(7, "b")]
    writer.abort([message])
    assert stand.staged() == []


def test_a_role_that_may_not_create_the_table_of_batches_learns_who_does_it(stand: TableStand, monkeypatch: pytest.MonkeyPatch) -> None:
    execute = psycopg.Connection.execute

    def refusing(self: psycopg.Connection[Any], query: Any, *rest: Any, **named: Any) -> Any:
        if query == table_changes.DEFINITION:
            raise psycopg.errors.InsufficientPrivilege("permission denied for schema public")
        return execute(self, query, *rest, **named)

    monkeypatch.setattr(psycopg.Connection, "execute", refusing)
    with pytest.raises(ConfigError, match=r"Its owner does it: CREATE TABLE IF NOT EXISTS spark_batches .*; GRANT SELECT, INSERT, UPDATE"):
        stand.write(rows((1, "a")), table="t", txnAppId="app", txnVersion="1")
    assert stand.staged() == []
    assert stand.rows("select count(*) from t") == [(0,)]


def test_a_stream_deletes_no_rows_in_a_batch_that_cannot_be_known_again(stand: TableStand) -> None:
    """A batch without tasks does not show the query's id."""
    stand.must("insert into t values (1, 'there', 1)")
    schema = schema_of(rows((1, "a")).schema)
    with pytest.raises(ConfigError, match="batch 3 has no task that knows the query's id; name the writer with option 'txnAppId'"):
        TableDataSource(given({"table": "t"})).streamWriter(schema, True).commit([], 3)
    assert stand.rows("select id from t") == [(1,)]
    TableDataSource(given({"table": "t"})).streamWriter(schema, False).commit([], 3)
    TableDataSource(given({"table": "t", "txnAppId": "app"})).streamWriter(schema, True).commit([], 3)
    assert stand.rows("select id from t") == []


def test_a_cluster_without_a_leader_is_named(stand: TableStand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_changes, "COMMIT_LIMIT_S", 0.0)
    writer = TableDataSource(given({"table": "t"})).writer(schema_of(rows((1, "a")).schema), False)
    message = writer.write(iter([rows((1, "a"))]))
    assert isinstance(message, StagedRows)
    with monkeypatch.context() as gone:
        gone.setattr(
            "triplicate.spark.cluster.database_tables._connect", lambda *_: (_ for _ in ()).throw(psycopg.OperationalError("refused"))
        )
        with pytest.raises(EnvironmentFault, match="no node that leads database 'db' can be reached: refused"):
            writer.commit([message])
    writer.commit([message])
    assert stand.rows("select id from t") == [(1,)]
