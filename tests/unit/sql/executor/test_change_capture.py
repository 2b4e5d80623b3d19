"""The capture of row changes: what it costs the garbage collector, and counters that rows do not show."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.property.rowlog_workload import Pair
from triplicate.sql.core.batch_builder import MAX_TRANSACTION_BYTES
from triplicate.sql.core.records import (
    RowKind,
    RowRun,
    SettingChange,
    TableDictionary,
    Transaction,
    decode_header,
    decode_transaction,
    encode_row_change,
    encode_transaction,
)
from triplicate.sql.executor.captured_rows import row_run, single_row_run
from triplicate.sql.executor.change_capture import ChangeCapture
from triplicate.sql.executor.statement_batches import AutocommitRequest


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    yield made
    made.close()


def logged(pair: Pair, *statements: str) -> list[object]:
    """The operations of statements that run as one batch: row runs by kind and table, and settings."""
    pending = pair.writer.run_batch([AutocommitRequest(pair.gate.examine(sql), ()) for sql in statements])
    assert [answer.error for answer in pending.answers] == [None] * len(statements)
    tables = decode_header(pending.preamble).tables
    pair.send(pending)
    operations = [operation for record in pending.records for operation in decode_transaction(record, tables).operations]
    return [(operation.kind, operation.table.name) if isinstance(operation, RowRun) else operation for operation in operations]


def test_the_rows_of_a_large_statement_are_not_the_garbage_collectors(pair: Pair) -> None:
    # Tracked rows would double the cost of capture, because each full collection visits all of them.
    connection = pair.reader
    connection.execute("pragma query_only = off; create table t(id integer primary key, a, b text)")
    capture = ChangeCapture(connection, MAX_TRANSACTION_BYTES)
    capture.prepare()
    connection.executemany("insert into t values(?, ?, ?)", [(number, 0.5, "text") for number in range(1000)])
    connection.execute("update t set a = null")
    gc.collect()  # A tuple is passed over once those in it are.
    gc.collect()
    assert len(capture.events) == 2000
    assert not any(map(gc.is_tracked, capture.events))
    assert [(run.kind, run.count) for run in capture.operations() if isinstance(run, RowRun)] == [
        (RowKind.INSERT, 1000),
        (RowKind.UPDATE, 1000),
    ]
    connection.preupdate_hook(None)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    "columns",
    [
        "k integer primary key, v, s as (v * 2) stored)",
        "v, s as (v || 'x') stored, k text primary key)",
        "k, v, primary key(v, k))",
        "v, k, primary key(k, v)) without rowid",
        "k, v)",
    ],
)
def test_the_run_of_one_row_is_that_of_a_list_of_one(columns: str, full: bool, pair: Pair) -> None:
    connection = pair.reader
    connection.execute(f"pragma query_only = off; create table t({columns}")
    capture = ChangeCapture(connection, MAX_TRANSACTION_BYTES)
    capture.schema_changed(frozenset({"t"} if full else ()))
    capture.prepare()
    for sql in ("insert into t(k, v) values(7, 1)", "update t set v = 2", "update t set k = 8", "delete from t"):
        connection.execute(sql)
    connection.preupdate_hook(None)
    assert len(capture.events) >= 4
    for event in capture.events:
        group = capture._groups[event[0]]
        runs = single_row_run(group, event), row_run(group, [event])
        change = group.change_of(event)
        assert change is not None
        records = [encode_transaction(Transaction(1, [run]), TableDictionary()) for run in runs]
        assert records[0] == records[1] == encode_row_change(1, change, TableDictionary())


def test_a_counter_that_follows_from_the_rows_is_not_logged(pair: Pair) -> None:
    pair.script("create table a(id integer primary key autoincrement, u unique);\ncreate table b(id integer primary key autoincrement, u)")
    assert logged(pair, "insert into a(u) values(1), (2)", "insert into b values(7, 0)", "insert into b values(3, 0)") == [
        (RowKind.INSERT, "a"),
        (RowKind.INSERT, "b"),
        (RowKind.INSERT, "b"),
    ]
    assert logged(pair, "update a set u = 5 where u = 1", "delete from b") == [(RowKind.UPDATE, "a"), (RowKind.DELETE, "b")]
    assert logged(pair, "insert into b(u) values(1)") == [(RowKind.INSERT, "b")]
    assert pair.follower.execute("select name, seq from sqlite_sequence order by name").fetchall() == [("a", 2), ("b", 8)]


def test_a_counter_that_moves_without_a_row_is_logged_beside_those_that_do_not(pair: Pair) -> None:
    pair.script("create table a(id integer primary key autoincrement, u unique);\ncreate table b(id integer primary key autoincrement, u)")
    # Counters whose sum is beyond SQLite's integers.
    pair.script(f"insert into a values({2**62}, 1);\ninsert into b values({2**62 + 1}, 1)")
    ignored = "insert into a(u) values(1) on conflict do nothing"
    assert logged(pair, ignored, "insert into b(u) values(2)", ignored) == [
        SettingChange("sequence:a", 2**62 + 1),
        (RowKind.INSERT, "b"),
        SettingChange("sequence:a", 2**62 + 2),
    ]
    assert pair.follower.execute("select seq from sqlite_sequence order by name").fetchall() == [(2**62 + 2,), (2**62 + 2,)]


def test_a_new_counter_is_logged_where_the_row_does_not_determine_it(pair: Pair) -> None:
    pair.script("create table a(id integer primary key autoincrement, u not null on conflict ignore)")
    assert logged(pair, "insert into a(u) values(null)") == [SettingChange("sequence:a", 1)]
    pair.script("create table b(id integer primary key autoincrement)")
    assert logged(pair, "insert into b values(-5)") == [(RowKind.INSERT, "b"), SettingChange("sequence:b", 0)]


def test_an_update_that_is_logged_as_an_insert_does_not_move_the_counter(pair: Pair) -> None:
    pair.script("create table a(id integer primary key autoincrement, u, v as (u + 1) virtual);\ninsert into a(u) values(1)")
    assert logged(pair, "update a set id = 9") == [(RowKind.DELETE, "a"), (RowKind.INSERT, "a"), SettingChange("sequence:a", 1)]
    assert pair.follower.execute("select seq from sqlite_sequence").fetchall() == [(1,)]
