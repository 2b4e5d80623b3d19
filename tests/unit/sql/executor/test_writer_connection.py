"""The row log's rules one by one: what a leader captures, and how a follower applies it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw
import pytest

from tests.property.rowlog_workload import Pair, contents
from triplicate.errors import Diverged, SqlError
from triplicate.sql import RowKind, RowRun, SchemaChange, SettingChange, decode_header, decode_transaction
from triplicate.sql.core.interface import Row, Value
from triplicate.sql.core.records import Transaction
from triplicate.sql.executor.change_capture import ChangeCapture
from triplicate.sql.executor.interrupts import TransactionLost
from triplicate.sql.executor.statement_batches import AutocommitRequest, PendingBatch
from triplicate.sql.storage.applier import LogBatch, follow


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    yield made
    made.close()


def send(pair: Pair, *statements: str) -> list[Transaction]:
    """Run each statement as a batch of its own and apply it on the follower; the transactions logged."""
    logged: list[Transaction] = []
    for sql in statements:
        pending = pair.writer.run_batch([AutocommitRequest(pair.gate.examine(sql), ())])
        error = pending.answers[0].error
        if error is not None:
            pair.writer.rollback()
            raise error
        pair.send(pending)
        logged += transactions(pending)
    return logged


def transactions(pending: PendingBatch) -> list[Transaction]:
    tables = decode_header(pending.preamble).tables
    return [decode_transaction(record, tables) for record in pending.records]


def runs(transaction: Transaction) -> list[RowRun]:
    return [operation for operation in transaction.operations if isinstance(operation, RowRun)]


def same(pair: Pair) -> None:
    assert contents(pair.paths[0]) == contents(pair.paths[1])


COUNTED = "create table counted(id integer primary key autoincrement)"


def test_rows_are_logged_by_column_with_their_keys(pair: Pair) -> None:
    send(pair, COUNTED, "create table t(id integer primary key, a, b)", "create table k(x text primary key, y, g as (y + 1) stored)")
    inserted, updated, deleted = send(
        pair,
        "insert into t values(7, 1.5, 'x'), (8, null, x'00')",
        "update t set id = 9, b = 'y' where id = 8",
        "delete from t where id = 7",
    )
    (run,) = runs(inserted)
    assert (run.kind, run.count, list(run.rowids or ())) == (RowKind.INSERT, 2, [7, 8])
    assert [list(column) for column in run.new or ()] == [[7, 8], [1.5, None], ["x", b"\0"]]
    assert run.table.columns == ("id", "a", "b")
    assert run.table.types == ("INTEGER", "", "")
    (run,) = runs(updated)
    assert (list(run.rowids or ()), list(run.new_rowids or ())) == ([8], [9])
    assert [list(column) for column in run.new or ()] == [[9], [None], ["y"]]
    (run,) = runs(deleted)
    assert (list(run.rowids or ()), run.new, run.old, run.keys) == ([7], None, None, None)
    _, moved, gone = send(pair, "insert into k values('a', 1)", "update k set x = 'b'", "delete from k")
    (run,) = runs(moved)
    assert [list(column) for column in run.keys or ()] == [["a"]]
    assert [list(column) for column in run.new or ()] == [["b"], [1]]
    (run,) = runs(gone)
    assert [list(column) for column in run.keys or ()] == [["b"]]
    same(pair)


def test_old_rows_are_logged_where_a_table_asks_for_them(pair: Pair) -> None:
    send(
        pair,
        COUNTED,
        "create table t(id integer primary key, a)",
        "alter table t set (change_images = full)",
        "insert into t values(1, 'old')",
    )
    updated, renamed, deleted = send(pair, "update t set a = 'new'", "alter table t rename to u", "delete from u")
    (run,) = runs(updated)
    assert [list(column) for column in run.old or ()] == [[1], ["old"]]
    assert SettingChange("change_images:u", "full") in renamed.operations
    (run,) = runs(deleted)
    assert [list(column) for column in run.old or ()] == [[1], ["new"]]
    (back,) = send(pair, "alter table u set (change_images = keys)")
    assert back.operations == [SettingChange("change_images:u", "keys")]
    with pytest.raises(SqlError, match="no such table"):
        send(pair, "alter table none set (change_images = full)")
    same(pair)


def test_a_failed_statement_leaves_none_of_its_rows(pair: Pair) -> None:
    send(pair, COUNTED, "create table t(a unique)", "insert into t values(3)")
    writer = pair.writer
    writer.begin()
    writer.run(pair.gate.examine("insert into t values(1)"), ())
    for conflict in ("", "or fail", "or abort"):
        with pytest.raises(SqlError) as failure:
            writer.run(pair.gate.examine(f"insert {conflict} into t values(2), (3)"), ())
        assert failure.value.sqlstate == "23505"
    pending = writer.finish((), "")
    (logged,) = transactions(pending)
    pair.send(pending)
    assert [list(column) for run in runs(logged) for column in run.new or ()] == [[1]]
    same(pair)


def test_a_conflict_that_rolls_back_ends_one_request_and_not_the_others(pair: Pair) -> None:
    send(pair, COUNTED, "create table t(a unique)", "insert into t values(1)")
    texts = ["insert into t values(2)", "insert or rollback into t values(3), (1)", "insert into t values(4)"]
    pending = pair.writer.run_batch([AutocommitRequest(pair.gate.examine(sql), ()) for sql in texts])
    assert [answer.error and answer.error.sqlstate for answer in pending.answers] == [None, "23505", None]
    pair.send(pending)
    assert pair.follower.execute("select a from t").fetchall() == [(1,), (2,), (4,)]
    pair.writer.begin()
    with pytest.raises(TransactionLost):
        pair.writer.run(pair.gate.examine(texts[1]), ())
    pair.writer.rollback()
    same(pair)


def test_a_hook_that_fails_poisons_the_statement(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    send(pair, COUNTED, "create table k(a primary key, b)", "insert into k values(1, 1)")

    def broken(self: ChangeCapture, known: object, change: object) -> None:
        raise RuntimeError("the hook has a fault")

    with monkeypatch.context() as patched:
        patched.setattr(ChangeCapture, "_update", broken)
        with pytest.raises(SqlError) as failure:
            send(pair, "update k set b = 2")
    assert failure.value.sqlstate == "XX000"
    assert pair.reader.execute("select b from k").fetchall() == [(1,)]
    send(pair, "update k set b = 3")
    same(pair)


def test_text_that_is_not_utf8_is_refused(pair: Pair) -> None:
    send(pair, COUNTED, "create table t(a text)")
    with pytest.raises(SqlError) as failure:
        send(pair, "insert into t values(cast(x'ff' as text))")
    assert failure.value.sqlstate == "22021"
    same(pair)


def test_full_text_search_answers_the_same_on_a_follower(pair: Pair) -> None:
    send(pair, COUNTED, "create virtual table f using fts5(t)")
    send(pair, "insert into f values('alpha beta')", "insert into f values('beta gamma')", "delete from f where rowid = 1")
    pair.writer.begin()
    pair.writer.run(pair.gate.examine("insert into f values('alpha')"), ())
    pair.writer.savepoint("s")
    pair.writer.run(pair.gate.examine("insert into f values('alpha delta')"), ())
    pair.writer.rollback_to("s")
    pair.send(pair.writer.finish((), ""))
    same(pair)
    reader = apsw.Connection(pair.paths[1])
    assert reader.execute("select t from f where f match 'alpha'").fetchall() == [("alpha",)]
    reader.close()


def test_dropping_a_parent_logs_what_it_does_to_its_children(pair: Pair) -> None:
    send(pair, COUNTED, "create table p(id integer primary key)", "create table c(p references p(id) on delete set null)")
    send(pair, "insert into p values(1)", "insert into c values(1)")
    (dropped,) = send(pair, "drop table p")
    assert [type(operation) for operation in dropped.operations] == [RowRun, SchemaChange]
    assert pair.follower.execute("select p from c").fetchall() == [(None,)]
    same(pair)


def test_create_table_as_logs_the_stored_text_and_the_rows(pair: Pair) -> None:
    send(pair, COUNTED, "create table t(a, b)", "insert into t values(random(), 'x'), (2, null)")
    (made,) = send(pair, "create table u as select a, b, random() as r from t")
    assert isinstance(made.operations[0], SchemaChange)
    assert made.operations[0].sql == "CREATE TABLE u(a,b,r)"
    assert [run.count for run in runs(made)] == [2]
    assert send(pair, "create table if not exists u as select 1") == []
    same(pair)


def test_counters_follow_though_no_row_shows_them(pair: Pair) -> None:
    send(pair, "create table t(id integer primary key autoincrement, a unique, v as (a) virtual)")
    send(pair, "insert into t(a) values(1)", "insert or ignore into t(a) values(1)", "update t set id = 90")
    same(pair)
    writer = pair.writer
    writer.begin()
    writer.run(pair.gate.examine("insert into t(a) values(5)"), ())
    writer.run(pair.gate.examine("delete from t where a = 5"), ())
    pair.send(writer.finish((), ""))
    same(pair)


def test_a_deferred_foreign_key_is_checked_before_anything_is_logged(pair: Pair) -> None:
    send(pair, COUNTED, "create table p(id integer primary key)", "create table c(p references p(id) deferrable initially deferred)")
    with pytest.raises(SqlError) as failure:
        send(pair, "insert into c values(9)")
    assert failure.value.sqlstate == "23503"
    same(pair)


def test_stored_values_behind_a_virtual_column_are_checked_as_all_others(pair: Pair) -> None:
    send(pair, COUNTED, "create table t(a int, v text as (a || '!') virtual, s varchar(2) as (a || '') stored)")
    send(pair, "insert into t(a) values(1), (null)", "update t set a = 22")
    with pytest.raises(SqlError) as failure:
        send(pair, "insert into t(a) values(333)")
    assert failure.value.sqlstate == "22001"
    same(pair)
    assert pair.reader.execute("select * from t").fetchall() == [(22, "22!", "22"), (22, "22!", "22")]


@pytest.mark.parametrize(
    "sql",
    [
        "create table t(k primary key, v as (k) virtual) without rowid",
        "create table t(rowid, _rowid_, oid)",
    ],
)
def test_tables_whose_rows_could_not_be_addressed_are_refused(pair: Pair, sql: str) -> None:
    send(pair, COUNTED)
    with pytest.raises(SqlError) as failure:
        send(pair, sql)
    assert failure.value.sqlstate == "0A000"
    same(pair)


def test_a_batch_is_applied_once(pair: Pair) -> None:
    send(pair, COUNTED, "create table t(a)")
    start = pair.writer.position
    pending = pair.writer.run_batch([AutocommitRequest(pair.gate.examine("insert into t values(1)"), ())])
    batch = LogBatch(start, pending.records, pending.preamble, 1)
    pair.send(pending)
    assert follow(pair.applier, [batch]) == start + 1
    assert follow(pair.applier, [batch, batch]) == start + 1
    assert pair.follower.execute("select a from t").fetchall() == [(1,)]
    with pytest.raises(Diverged, match="continues at offset"):
        follow(pair.applier, [LogBatch(start + 5, pending.records, pending.preamble, 1)])
    same(pair)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("delete from t where id = 2", "changed 1"),
        ("insert into t values(3, 3)", "UNIQUE"),
        ("drop table t", "does not exist in this copy"),
        ("alter table t add column more", "another shape"),
        ("create table extra(a)", "schema differs"),
        ("update triplicate_state set database = x'00'", "another database"),
        ("update triplicate_state set schema_version = 9", "version 9"),
    ],
)
def test_a_copy_that_differs_is_found_out(pair: Pair, damage: str, words: str) -> None:
    send(pair, COUNTED, "create table t(id integer primary key, a)", "insert into t values(1, 1), (2, 2)")
    pair.follower.execute(damage)
    pair.applier.rollback()
    pair.applier._database = pair.follower.execute("select database from triplicate_state").fetchall()[0][0]  # type: ignore[assignment]
    texts = ["update t set a = 0", "insert into t values(3, 3)", "create table u(a)"]
    pending = pair.writer.run_batch([AutocommitRequest(pair.gate.examine(sql), ()) for sql in texts])
    position = pair.applier.position
    with pytest.raises(Diverged, match=words):
        pair.send(pending)
    assert pair.applier.position == position


def test_results_and_ids_are_kept_on_followers_too(pair: Pair) -> None:
    send(pair, COUNTED, "create table t(id integer primary key)")
    request = AutocommitRequest(pair.gate.examine("insert into t default values returning id"), (), request_id="once")
    pair.send(pair.writer.run_batch([request]))
    again = pair.writer.run_batch([request])
    assert again.records == []
    assert again.answers[0].outcome is not None
    assert again.answers[0].outcome.rows == [(1,)]
    pair.writer.rollback()
    kept = pair.follower.execute("select request_id, transaction_id from triplicate_requests").fetchall()
    assert kept == [("once", (1 << 40) + 3)]
    same(pair)


def test_statistics_of_one_table_are_made_again_on_every_copy(pair: Pair) -> None:
    send(pair, COUNTED, "create table t(id integer primary key, v)", "create index t_v on t(v)", "insert into t(v) values(1), (2)")
    statistics = "select stat from sqlite_stat1 where tbl = 't'"
    for number, sql in enumerate(("analyze t", "analyze main.t", "analyze t_v", "analyze", "analyze t")):
        send(pair, f"insert into t(v) values({number + 3})")
        send(pair, sql)
        rows = [(f"{number + 3} 1",)]
        assert pair.reader.execute(statistics).fetchall() == pair.follower.execute(statistics).fetchall() == rows
        same(pair)
    for sql in ("delete from sqlite_stat1", "update sqlite_stat1 set stat = '1'", "delete from sqlite_sequence"):
        with pytest.raises(SqlError, match="belongs to SQLite"):
            pair.gate.examine(sql)


def test_a_change_whose_rows_are_refused_is_undone_and_its_neighbours_are_not(pair: Pair) -> None:
    send(pair, COUNTED, "create table t(id integer primary key)")
    refusal = SqlError("22003", "out of range")

    def refuse(rows: Sequence[Row]) -> None:
        assert list(rows) == [(2,)]
        raise refusal

    inserts = [pair.gate.examine(f"insert into t values ({number}) returning id") for number in (1, 2, 3)]
    requests = [AutocommitRequest(insert, (), check_rows=check) for insert, check in zip(inserts, (None, refuse, None), strict=True)]
    pending = pair.writer.run_batch(requests)
    assert [answer.error for answer in pending.answers] == [None, refusal, None]
    pair.send(pending)
    assert pair.follower.execute("select id from t").fetchall() == [(1,), (3,)]
    same(pair)


def run_many(pair: Pair, sql: str, rows: Sequence[Sequence[Value]]) -> list[int]:
    """Run a statement for many rows as one transaction and apply it on the follower; the rows changed by each run."""
    counts: list[int] = []
    pair.writer.begin()
    pair.writer.run_many(pair.gate.examine(sql), rows, counts)
    pair.send(pair.writer.finish([], ""))
    return counts


def test_one_statement_runs_for_many_rows(pair: Pair) -> None:
    send(pair, COUNTED, "create table t(id integer primary key, a text, v as (a || '!') virtual)")
    send(pair, "create table u(id integer primary key, a text)", "create table l(a)")
    send(pair, "create trigger tt after insert on t when new.a = 'twice' begin insert into l values(new.id); end")
    assert run_many(pair, "insert into t(id, a) values(?1, ?2)", [(1, "x"), (2, "twice"), (3, None)]) == [1, 1, 1]
    assert run_many(pair, "insert into counted values(?1)", [(None,), (7,), (None,)]) == [1, 1, 1]
    assert run_many(pair, "update t set a = ?1 where id >= ?2", [("y", 3), ("z", 2), ("q", 9)]) == [1, 2, 0]
    upsert = "insert into u values(?1, ?2) on conflict(id) do update set a = excluded.a"
    assert run_many(pair, upsert, [(1, "a"), (1, "b"), (2, "c"), (1, "d")]) == [1, 1, 1, 1]
    assert run_many(pair, "insert into u values(?1, 'x') on conflict do nothing", [(1,), (3,)]) == [0, 1]
    same(pair)
    assert pair.reader.execute("select id, a, v from t").fetchall() == [(1, "x", "x!"), (2, "z", "z!"), (3, "z", "z!")]


def test_a_refused_row_undoes_all_rows_of_its_call(pair: Pair) -> None:
    send(pair, COUNTED, "create table t(id integer primary key, a varchar(3))")
    pair.writer.begin()
    insert = pair.gate.examine("insert into t values(?1, ?2)")
    pair.writer.run_many(insert, [(1, "x")], [])
    for rows, sqlstate in (([(2, "y"), (3, "long")], "22001"), ([(2, "y"), (1, "z")], "23505")):
        counts: list[int] = []
        with pytest.raises(SqlError) as refused:
            pair.writer.run_many(insert, [*rows, (9, "z")], counts)
        assert (refused.value.sqlstate, counts) == (sqlstate, [1])
    pair.send(pair.writer.finish([], ""))
    same(pair)
    assert pair.reader.execute("select id from t").fetchall() == [(1,)]
