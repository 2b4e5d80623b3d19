"""The reading connection of the event loop: its limits, and that nothing stays open on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import apsw
import pytest

from triplicate.errors import SqlError
from triplicate.runtime import Worker
from triplicate.sql.core.interface import Prepared, Row
from triplicate.sql.executor.examined_schema import NewestSchema
from triplicate.sql.executor.loop_reader import LoopReader
from triplicate.sql.executor.reader_connection import ReaderConnection

ROWS = 20_000


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "copy.db")


@pytest.fixture
def writer(path: str) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(path)
    for sql in ("pragma journal_mode = wal", "create table t(id integer primary key, a text)"):
        connection.execute(sql).fetchall()
    connection.execute(
        "with recursive c(x) as (select 1 union all select x + 1 from c limit ?) insert into t select x, 'a' from c", (ROWS,)
    )
    yield connection
    connection.close(True)


@pytest.fixture
def schema() -> NewestSchema:
    return NewestSchema()


@pytest.fixture
def reader(path: str, writer: apsw.Connection, schema: NewestSchema) -> Iterator[LoopReader]:
    reader = LoopReader(path, None, schema)
    yield reader
    reader.refuse()
    reader.close()


def examined(reader: LoopReader, sql: str) -> Prepared:
    prepared = reader.examine(sql)
    assert prepared is not None
    return prepared


def read(reader: LoopReader, sql: str, *parameters: int | str) -> list[Row] | None:
    return reader.read(examined(reader, sql), parameters, 1)


def checks(reader: LoopReader, reset: int | None = None) -> int:
    assert reader._opened is not None
    if reset is not None:
        reader._opened.limit.checks = reset
    return reader._opened.limit.checks


def test_a_lookup_is_answered_however_often_it_runs(reader: LoopReader) -> None:
    prepared = examined(reader, "select id, a from t where id = ?")
    # SQLite adds up the steps of all executions: 9 steps each.
    assert all(reader.read(prepared, (number,), 1) == [(number, "a")] for number in range(1, 5000))


def test_a_scan_is_interrupted_and_kept_off_the_loop(reader: LoopReader) -> None:
    prepared = examined(reader, "select count(*) from t where a = 'b'")
    assert reader.read(prepared, (), 1) is None
    assert checks(reader) == 21
    for _ in range(8):
        checks(reader, 0)
        assert reader.read(prepared, (), 1) is None
        assert checks(reader) == 0
    assert reader.read(prepared, (), 1) is None
    assert checks(reader) == 21
    assert read(reader, "select a from t where id = 1") == [("a",)]


def test_a_scan_of_many_pages_is_interrupted_within_few_steps(reader: LoopReader, writer: apsw.Connection) -> None:
    writer.execute("update t set a = ? where id <= 1000", ("x" * 8000,))
    assert read(reader, "select max(a) from t where id <= 20") == [("x" * 8000,)]
    assert read(reader, "select max(a) from t where id <= 1000") is None
    assert checks(reader) < 5


def test_a_result_of_too_many_rows_or_bytes_is_not_cut(reader: LoopReader, writer: apsw.Connection) -> None:
    assert len(read(reader, "select id from t where id <= 200") or []) == 200
    assert read(reader, "select id from t where id <= 201") is None
    writer.execute("update t set a = ? where id <= 10", ("x" * 8000,))
    assert len(read(reader, "select a from t where id <= 8") or []) == 8
    assert read(reader, "select a from t where id <= 10") is None
    writer.execute("update t set a = ? where id = 11", ("x" * 9000,))
    assert read(reader, "select a from t where id = 11") is None
    assert read(reader, "select id from t where id = 11") == [(11,)]


@pytest.mark.parametrize(
    "sql", ["select a from t where id = 1", "select id from t where id <= 300", "select count(*) from t where a = 'b'", "select a from"]
)
def test_no_snapshot_is_kept(reader: LoopReader, writer: apsw.Connection, sql: str) -> None:
    prepared = Prepared(sql, examined(reader, "select a from t").kind, (), (), "SELECT", is_measured=True)
    reader.read(prepared, (), 1)
    writer.execute("insert into t(a) values('new')")
    busy, in_log, moved = writer.execute("pragma wal_checkpoint(truncate)").get
    assert (busy, in_log, moved) == (0, 0, 0)


def test_a_statement_that_fails_is_left_to_the_thread(reader: LoopReader) -> None:
    prepared = examined(reader, "select abs(id) from t where id = ?")
    assert reader.read(prepared, ("x", "y"), 1) is None
    assert reader.examine("select nosuch from t") is None
    assert reader.examine(f"select {'1 + ' * 1000} 1") is None


def test_a_locked_file_is_left_to_the_thread_and_tried_again(reader: LoopReader, writer: apsw.Connection) -> None:
    prepared = examined(reader, "select a from t where id = 1")
    reader.close()
    writer.execute("pragma journal_mode = delete").fetchall()  # With a write-ahead log, nothing locks readers out for long.
    writer.execute("begin exclusive")
    assert reader.read(prepared, (), 1) is None
    writer.execute("commit")
    assert reader.read(prepared, (), 1) == [("a",)]


def test_a_changed_width_is_left_to_the_thread(reader: LoopReader, writer: apsw.Connection) -> None:
    prepared = examined(reader, "select * from t where id = 1")
    writer.execute("alter table t add column b")
    assert reader.read(prepared, (), 1) is None
    assert len(examined(reader, "select * from t").columns) == 3


def test_a_closed_reader_opens_no_connection(reader: LoopReader) -> None:
    prepared = examined(reader, "select a from t where id = 1")
    reader.refuse()
    reader.close()
    for late in (lambda: reader.read(prepared, (), 1), lambda: reader.examine("select 1")):
        with pytest.raises(SqlError) as refused:
            late()
        assert refused.value.sqlstate == "57P01"


def test_what_a_thread_has_read_of_a_large_schema_is_not_read_again(
    reader: LoopReader, path: str, writer: apsw.Connection, schema: NewestSchema
) -> None:
    with writer:
        for number in range(1000):
            writer.execute(f"create view v{number} as select a || 'x' as a from t")
    assert reader.examine("select a from v7") is None
    examine_on_a_thread(path, schema, "select a from t")
    assert examined(reader, "select a from v7").columns
    writer.execute("create view w as select a from v7")
    assert reader.examine("select a from w") is None


def test_long_views_are_read_on_a_thread(reader: LoopReader, path: str, writer: apsw.Connection, schema: NewestSchema) -> None:
    writer.execute(f"create view v as select {' || '.join(['a'] * 500)} as a from t")
    writer.execute(f"create trigger i after insert on t when new.a = 'b' begin update t set a = {' || '.join(['a'] * 500)}; end")
    assert reader.examine("select id from t") is not None
    for sql in ("select a from v", "insert into t values (0, 'c')"):
        assert reader.examine(sql) is None
        examine_on_a_thread(path, schema, sql)
        assert reader.examine(sql) is not None


def examine_on_a_thread(path: str, schema: NewestSchema, sql: str) -> None:
    other = ReaderConnection(cast("Worker", None), path, None, schema)
    other.examine(sql)
    other._close()
