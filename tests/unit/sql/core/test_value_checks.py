"""A value that the leader stores fits its column's declared type, or its statement fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.property.rowlog_workload import Pair, contents
from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.executor.statement_batches import AutocommitRequest


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    made.script("create table counted(id integer primary key autoincrement)")
    yield made
    made.close()


def send(pair: Pair, sql: str, *parameters: Value) -> None:
    pending = pair.writer.run_batch([AutocommitRequest(pair.gate.examine(sql), parameters)])
    error = pending.answers[0].error
    if error is not None:
        pair.writer.rollback()
        raise error
    pair.send(pending)


def refused(pair: Pair, sql: str, *parameters: Value) -> str:
    with pytest.raises(SqlError) as caught:
        send(pair, sql, *parameters)
    return caught.value.sqlstate


def rows(pair: Pair, sql: str) -> list[tuple[Value, ...]]:
    return list(pair.reader.execute(sql).fetchall())


FITS: list[tuple[str, Value]] = [
    ("int", 7),
    ("int", "7"),
    ("bigint", 2**63 - 1),
    ("smallint", 40_000),
    ("bool", 1),
    ("boolean", 0),
    ("real", 1.5),
    ("real", 2),
    ("double precision", float("inf")),
    ("numeric", 1.5),
    ("numeric", 10**12),
    ("numeric(10,2)", 1.25),
    ("numeric(10,2)", -99999999.99),
    ("numeric(3)", 999),
    ("text", "x"),
    ("text", 5),
    ("varchar(3)", "abc"),
    ("varchar(3)", "日本語"),
    ("char(2)", "ab"),
    ("varchar", "x" * 1000),
    ("blob", b"\0"),
    ("bytea", b""),
    ("date", "2026-02-28"),
    ("time", "04:05:06"),
    ("time", "04:05:06.500000"),
    ("time", "24:00:00"),
    ("timestamp", "2026-02-28 04:05:06"),
    ("timestamp", "2026-02-28 04:05:06.000001"),
    ("timestamptz", "2026-02-28 04:05:06+00:00"),
    ("timestamp with time zone", "2026-02-28 04:05:06.120000+00:00"),
    ("timestamptz", "2026-02-28 04:05:06"),
    ("uuid", "00000000-0000-0000-0000-00000000000a"),
    ("json", '{"a": [1, null]}'),
    ("jsonb", "3"),
    ("json", "1.5"),
    ("", "x"),
    ("mood", "happy"),
]


@pytest.mark.parametrize(("declared", "value"), FITS)
def test_a_value_of_the_columns_type_is_stored(pair: Pair, declared: str, value: Value) -> None:
    send(pair, f"create table t(a {declared})")
    send(pair, "insert into t values(?)", value)
    send(pair, "insert into t values(null)")
    assert rows(pair, "select count(*) from t") == [(2,)]
    assert contents(pair.paths[0]) == contents(pair.paths[1])


REFUSED: list[tuple[str, Value, str]] = [
    ("int", "x", "22P02"),
    ("int", 1.5, "42804"),
    ("int", b"1", "42804"),
    ("bigint", 1e19, "22003"),
    ("bool", "true", "22P02"),
    ("bool", 2, "42804"),
    ("real", "x", "22P02"),
    ("double precision", b"1", "42804"),
    ("numeric", "x", "22P02"),
    ("numeric(10,2)", 1.005, "22003"),
    ("numeric(10,2)", 0.1 + 0.2, "22003"),
    ("numeric(4,2)", 100, "22003"),
    ("numeric(4,2)", -100.5, "22003"),
    ("numeric(3)", 1.5, "22003"),
    ("text", b"x", "42804"),
    ("varchar(3)", "abcd", "22001"),
    ("character varying(3)", 12345, "22001"),
    ("char(2)", "abc", "22001"),
    ("blob", "x", "42804"),
    ("bytea", 1, "42804"),
    ("date", "2026-02-29", "22007"),
    ("date", "2026-1-1", "22007"),
    ("date", "20260101", "42804"),
    ("time", "4:05", "22007"),
    ("time", "04:05:06+00:00", "22007"),
    ("timestamp", "2026-02-28T04:05:06", "22007"),
    ("timestamp", "2026-02-28 04:05:06.5", "22007"),
    ("timestamp", "2026-02-28 04:05:06+00:00", "22007"),
    ("timestamp", 5, "42804"),
    ("timestamptz", "2026-02-28 04:05:06+02:00", "22007"),
    ("timestamptz", "2026-02-28 04:05:06+00", "22007"),
    ("uuid", "00000000-0000-0000-0000-00000000000A", "22P02"),
    ("json", "{", "22P02"),
    ("jsonb", "NaN", "22P02"),
    ("json", b"{}", "42804"),
    ("json", float("inf"), "22P02"),
]


@pytest.mark.parametrize(("declared", "value", "sqlstate"), REFUSED)
def test_a_value_of_another_type_is_refused(pair: Pair, declared: str, value: Value, sqlstate: str) -> None:
    send(pair, f"create table t(a {declared})")
    assert refused(pair, "insert into t values(?)", value) == sqlstate
    send(pair, "insert into t values(null)")
    assert refused(pair, "update t set a = ?", value) == sqlstate
    assert rows(pair, "select a from t") == [(None,)]


def test_the_error_names_column_table_and_value(pair: Pair) -> None:
    send(pair, "create table items(id integer primary key, price numeric(10,2))")
    with pytest.raises(SqlError, match='numeric\\(10,2\\) of column "price" of table "items"') as caught:
        send(pair, "insert into items values(1, 1.005)")
    assert caught.value.hint == "round(…, 2) cuts what is too precise"


def test_an_overflow_does_not_become_a_float(pair: Pair) -> None:
    send(pair, "create table t(n bigint)")
    send(pair, "insert into t values(9223372036854775807)")
    assert refused(pair, "update t set n = n + 1") == "22003"
    assert rows(pair, "select n, typeof(n) from t") == [(2**63 - 1, "integer")]


def _old_row(pair: Pair) -> None:
    """A row of a release that did not check: text in an integer column, in both files."""
    send(pair, "create table t(id integer primary key, n int, d date)")
    for path in pair.paths:
        connection = apsw.Connection(path)
        connection.execute("insert into t values(1, 'many', 'soon')")
        connection.close()


def test_values_of_earlier_releases_stay_until_they_are_changed(pair: Pair) -> None:
    _old_row(pair)
    send(pair, "update t set d = '2026-01-01'")
    assert rows(pair, "select n, d from t") == [("many", "2026-01-01")]
    assert refused(pair, "update t set n = 'more'") == "22P02"
    send(pair, "update t set n = n || ''")
    send(pair, "update t set id = 2")
    send(pair, "update t set n = 3")
    assert contents(pair.paths[0]) == contents(pair.paths[1])


def test_one_bad_row_undoes_its_statement_and_not_those_before(pair: Pair) -> None:
    send(pair, "create table t(n int)")
    pair.writer.begin()
    good, bad = pair.gate.examine("insert into t values(1)"), pair.gate.examine("insert into t values(2), ('x'), (3)")
    pair.writer.run(good, ())
    with pytest.raises(SqlError):
        pair.writer.run(bad, ())
    pair.writer.run(good, ())
    pair.send(pair.writer.finish([], ""))
    assert rows(pair, "select n from t") == [(1,), (1,)]
    assert contents(pair.paths[0]) == contents(pair.paths[1])


def test_what_triggers_cascades_and_generated_columns_store_is_checked_too(pair: Pair) -> None:
    send(pair, "create table log(n int)")
    send(pair, "create table t(a, s int generated always as (a || 'x') stored)")
    send(pair, "create table u(a)")
    send(pair, "create trigger tu after insert on u begin insert into log values(new.a); end")
    assert refused(pair, "insert into t values(1)") == "22P02"
    send(pair, "insert into u values('5')")
    assert refused(pair, "insert into u values('x')") == "22P02"
    send(pair, "create table v(a, n int, w as (a) virtual)")
    assert refused(pair, "insert into v values(1, 'x')") == "22P02"
    assert rows(pair, "select (select count(*) from t), (select count(*) from u), (select n from log)") == [(0, 1, 5)]


def test_tables_made_from_queries_and_shadow_tables(pair: Pair) -> None:
    send(pair, "create table s(a)")
    send(pair, "insert into s values('x')")
    send(pair, "create table c as select a from s")
    send(pair, "create virtual table f using fts4(body)")
    send(pair, "insert into f values('one two three')")
    send(pair, "insert into f values('two four')")
    send(pair, "insert into f(f) values('optimize')")
    assert rows(pair, "select count(*) from f where body match 'two'") == [(2,)]
    assert contents(pair.paths[0]) == contents(pair.paths[1])


def test_strict_tables_keep_sqlites_own_errors(pair: Pair) -> None:
    send(pair, "create table t(n int, v any) strict")
    assert refused(pair, "insert into t values('x', 1)") == "22P02"
    send(pair, "insert into t values(1, x'00'), (2, 'x')")


def test_a_serial_of_an_earlier_release_is_never_null(pair: Pair) -> None:
    # It went to SQLite as it was written, which knows no such type and leaves the key NULL.
    send(pair, "create table t(id bigserial primary key, x int)")
    assert refused(pair, "insert into t(x) values(1)") == "23502"
    send(pair, "insert into t values(1, 1)")
    assert refused(pair, "update t set id = null") == "23502"
    assert rows(pair, "select id, x from t") == [(1, 1)]


@pytest.mark.parametrize(
    "table",
    [
        "create table u(id integer primary key, k unique, v)",
        "create table u(id text primary key, k unique, v) without rowid",
        "create table u(id integer primary key, k unique, v, w as (v) virtual)",
    ],
)
def test_a_row_that_one_insert_stores_is_not_updated_by_it_again(pair: Pair, table: str) -> None:
    pair.script(table)
    send(pair, "insert into u(id, k, v) values (1, 1, 1)")
    upsert = "insert into u(id, k, v) values {} on conflict (id) do update set v = excluded.v"
    assert refused(pair, upsert.format("(2, 2, 1), (2, 3, 2)")) == "21000"
    assert refused(pair, upsert.format("(1, 1, 1), (1, 1, 2)")) == "21000"
    send(pair, upsert.format("(1, 1, 5), (2, 2, 6)"))
    assert rows(pair, "select id + 0, v from u order by id") == [(1, 5), (2, 6)]


def test_a_trigger_may_update_a_row_that_the_insert_stores(pair: Pair) -> None:
    pair.script("create table u(id integer primary key, v)")
    pair.script("create trigger w after insert on u begin update u set v = v + 1; end")
    send(pair, "insert into u values (1, 1), (2, 1) on conflict (id) do update set v = 9")
    assert rows(pair, "select * from u order by id") == [(1, 3), (2, 2)]
