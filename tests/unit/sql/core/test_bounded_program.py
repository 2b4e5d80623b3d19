"""Which programs of SQLite end after a bounded number of steps."""

from __future__ import annotations

import apsw
import pytest

from triplicate.sql.core.bounded_program import MAX_INSTRUCTIONS, Instruction, is_bounded
from triplicate.sql.executor.scalars import register_scalars

SCHEMA = """
create table t(id integer primary key autoincrement, b text not null, check(length(b) < 10));
create index tb on t(b);
create table child(id integer primary key, t integer references t(id), x text unique);
create table plain(k text primary key, v);
create table w(k text primary key, v) without rowid;
create table noted(a);
create trigger noting after insert on noted begin insert into plain values(new.a, 1); end;
create table parent(id integer primary key);
create table cascaded(p integer references parent(id) on delete cascade);
create virtual table words using fts5(word);
"""


def instructions(connection: apsw.Connection, sql: str) -> list[Instruction]:
    return [Instruction(*row) for row in connection.execute(f"explain {sql}", apsw._null_bindings)]  # type: ignore[attr-defined]


def bounded(sql: str) -> bool:
    connection = apsw.Connection(":memory:")
    connection.execute("pragma foreign_keys = on")
    connection.preupdate_hook(lambda _change: None)
    connection.execute(SCHEMA)
    roots = connection.execute("select rootpage from sqlite_schema where name = 'sqlite_sequence'")
    return is_bounded(instructions(connection, sql), frozenset(int(root) for (root,) in roots))


@pytest.mark.parametrize(
    "sql",
    [
        "insert into t(b) values(?)",
        "insert into t(b) values(?) returning *",
        "insert into child values(?, ?, ?)",
        "insert into plain values(lower(?), ?) on conflict do nothing",
        "insert into w values(?, ?) on conflict(k) do update set v = excluded.v",
        "insert or replace into child values(?, ?, ?)",
        "update plain set v = v + ? where k = ?",
        "update child set x = ? where id = ? returning *",
        "delete from child where id = ?",
        "select v from plain where k = ?",
        "select * from t where id = ? and b = ?",
        "insert into parent values(?)",
    ],
)
def test_a_change_or_read_of_one_row_by_its_key_is_bounded(sql: str) -> None:
    assert bounded(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "update plain set v = 1",
        "update plain set v = 1 where v = ?",
        "delete from plain",
        "insert into plain select * from plain",
        "insert into plain with recursive c(x) as (select 1 union all select x + 1 from c) select x, x from c",
        "insert into plain values((select max(v) from plain), 1)",
        "select * from t where b > ?",
        "select count(*) from plain",
        "select k from plain order by v",
        "delete from parent where id = ?",
    ],
)
def test_a_statement_that_reads_many_rows_is_not_bounded(sql: str) -> None:
    assert not bounded(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "insert into plain values(randomblob(1000000000), 1)",
        "insert into plain values(?, printf('%.*c', 100000000, 'x'))",
        "select v from plain where k = ? and v like ?",
        "insert into noted values(1)",
        "insert into words values(?)",
        "select * from json_each(?)",
        "create table further(a)",
    ],
)
def test_a_statement_whose_instructions_may_be_expensive_is_not_bounded(sql: str) -> None:
    assert not bounded(sql)


def test_a_statement_that_may_end_the_transaction_is_not_bounded() -> None:
    assert not bounded("insert or rollback into plain values(?, ?)")
    assert bounded("insert or fail into plain values(?, ?)")


def test_a_loop_over_rows_of_a_table_that_may_be_large_is_not_bounded() -> None:
    connection = apsw.Connection(":memory:")
    connection.execute(SCHEMA)
    assert not is_bounded(instructions(connection, "insert into t(b) values(?)"))


def test_a_long_program_is_not_bounded() -> None:
    halt = Instruction(0, "Halt", 0, 0, 0, None, 0, None)
    assert is_bounded([halt] * MAX_INSTRUCTIONS)
    assert not is_bounded([halt] * (MAX_INSTRUCTIONS + 1))


def test_a_program_that_leaves_its_instructions_is_not_bounded() -> None:
    assert not is_bounded([Instruction(0, "Goto", 0, 7, 0, None, 0, None)])


def test_a_text_that_becomes_a_number_has_no_small_cost() -> None:
    """The number may have 131,072 digits, and each operation takes milliseconds with it."""
    connection = apsw.Connection(":memory:")
    register_scalars(connection)
    assert is_bounded(instructions(connection, "select triplicate_numeric_multiply(triplicate_to_int8(?, 0), ?)"))
    assert not is_bounded(instructions(connection, "select triplicate_numeric_multiply(triplicate_to_numeric(?, 25), ?)"))
