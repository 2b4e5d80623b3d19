"""The authorizer, SQLSTATEs, and kinds of statements."""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.interface import StatementKind
from triplicate.sql.core.lexer import SqlDialect, parameter_markers, split_statements, sqlite_tokens
from triplicate.sql.executor import authorizer
from triplicate.sql.executor.authorizer import Authorizer, change_images, savepoint_name
from triplicate.sql.executor.scalars import register_scalars
from triplicate.sql.storage.sqlstates import from_sqlite

SCHEMA = """
create table t(id integer primary key autoincrement, a text unique, b numeric(5, 2) not null default 0 check (b < 100));
create table child(p references t(id));
create view v as select a from t;
create table triplicate_state(a);
create table s(a integer) strict;
create trigger stop before delete on t begin select raise(abort, 'not this one'); end;
create trigger meddle after insert on child begin update sqlite_sequence set seq = 1; end;
"""


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    made = apsw.Connection(":memory:")
    made.execute("pragma foreign_keys = on")
    made.execute(SCHEMA)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("sql", "kind", "tag"),
    [
        ("select 1", StatementKind.READ, "SELECT"),
        ("values (1)", StatementKind.READ, "SELECT"),
        ("with x as (select 1) select * from x", StatementKind.READ, "SELECT"),
        ("explain delete from t", StatementKind.READ, "EXPLAIN"),
        ("pragma table_info(t)", StatementKind.READ, "PRAGMA"),
        ("select * from pragma_table_info('t')", StatementKind.READ, "SELECT"),
        ("pragma user_version", StatementKind.READ, "PRAGMA"),
        ("insert into t(a) values($1)", StatementKind.WRITE, "INSERT"),
        ("replace into t(a) values(1)", StatementKind.WRITE, "INSERT"),
        ("with x as (select 1) update t set a = 1", StatementKind.WRITE, "UPDATE"),
        ("delete from t returning id", StatementKind.WRITE, "DELETE"),
        ("create table u(a)", StatementKind.SCHEMA, "CREATE TABLE"),
        ("create unique index i on t(b)", StatementKind.SCHEMA, "CREATE INDEX"),
        ("create virtual table f using fts5(x)", StatementKind.SCHEMA, "CREATE TABLE"),
        ("alter table t rename column b to c", StatementKind.SCHEMA, "ALTER TABLE"),
        ("alter table t set (change_images = full)", StatementKind.SCHEMA, "ALTER TABLE"),
        ("drop view v", StatementKind.SCHEMA, "DROP VIEW"),
        ("analyze", StatementKind.SCHEMA, "ANALYZE"),
        ("pragma user_version = 3", StatementKind.SCHEMA, "PRAGMA"),
        ("begin", StatementKind.BEGIN, "BEGIN"),
        ("START TRANSACTION ISOLATION LEVEL SERIALIZABLE", StatementKind.BEGIN, "BEGIN"),
        ("begin immediate", StatementKind.BEGIN_IMMEDIATE, "BEGIN"),
        ("end transaction;", StatementKind.COMMIT, "COMMIT"),
        ("abort", StatementKind.ROLLBACK, "ROLLBACK"),
        ('rollback transaction to savepoint "A b"', StatementKind.ROLLBACK_TO, "ROLLBACK"),
        ("release s", StatementKind.RELEASE, "RELEASE"),
        ("savepoint s", StatementKind.SAVEPOINT, "SAVEPOINT"),
        ("-- nothing", StatementKind.EMPTY, ""),
        (" ; ", StatementKind.EMPTY, ""),
    ],
)
def test_kinds_of_statements_are_distinguished(connection: apsw.Connection, sql: str, kind: StatementKind, tag: str) -> None:
    prepared = Authorizer(connection).examine(sql)
    assert (prepared.kind, prepared.tag) == (kind, tag)


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("selec 1", "42601"),
        ("select 1; select 2", "42601"),
        ("select", "42601"),
        ("begin nonsense", "42601"),
        ("savepoint a b", "42601"),
        ("select * from nowhere", "42P01"),
        ("select nosuch from t", "42703"),
        ("select nofunction(1)", "42883"),
        ("create table t(a)", "42P07"),
        ("create index i on t(nosuch)", "42703"),
        ("drop index nosuch", "42704"),
        ("insert into t values(1)", "42601"),
        ("attach 'x' as y", "0A000"),
        ("vacuum", "0A000"),
        ("vacuum into 'x'", "0A000"),
        ("pragma journal_mode = delete", "0A000"),
        ("pragma writable_schema = on", "0A000"),
        ("pragma foreign_keys = off", "0A000"),
        ("create temp table x(a)", "0A000"),
        ("create temp trigger x after insert on t begin select 1; end", "0A000"),
        ("create virtual table x using dbstat", "0A000"),
        ("select load_extension('x')", "42501"),
        ("update sqlite_sequence set seq = 9", "42501"),
        ("delete from sqlite_schema", "42809"),
        ("insert into child values(1)", "42501"),
        ("delete from triplicate_state", "42501"),
        ("drop table triplicate_state", "42501"),
        ("create table triplicate_mine(a)", "42501"),
        ("create index i on triplicate_state(a)", "42501"),
        ("alter table triplicate_state rename to x", "42501"),
        ("alter table t set (fillfactor = 3)", "22023"),
        ("alter table t set (change_images = none)", "22023"),
        ("select '" + "x" * 8_400_000 + "'", "54000"),
    ],
)
def test_what_may_not_pass_is_refused_with_its_sqlstate(connection: apsw.Connection, sql: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as refused:
        Authorizer(connection).examine(sql)
    assert refused.value.sqlstate == sqlstate, refused.value.message


ROWS = ", ".join(f"('name {number}')" for number in range(300))


@pytest.mark.parametrize(
    "sql",
    [
        f"INSERT INTO t(a) VALUES {ROWS}",
        f"insert into t(a) values {ROWS} returning id",
        f"insert into t(a) values {ROWS}, (?3), (?1), ($name)",
        f"insert into t(a) values {ROWS}, ('a ; b')",
        f"insert into t(a) values {ROWS} -- and so on",
        f"insert into t(a) values {ROWS};",
        f"insert into t(a) values {ROWS} ",
        f"insert into t(a) select a from t where a in (values {ROWS})",
    ],
)
def test_a_long_insert_is_examined_as_a_short_one_would_be(connection: apsw.Connection, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Authorizer(connection).examine(sql)
    monkeypatch.setattr(authorizer, "_LONG", 1_000_000)
    assert found == Authorizer(connection).examine(sql)
    assert (found.kind, found.tag) == (StatementKind.WRITE, "INSERT")


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        (f"insert into t(a) values {ROWS}; delete from child", "42601"),
        (f"insert into t(a) values {ROWS} union", "42601"),
        (f"insert into triplicate_state(a) values {ROWS}", "42501"),
        (f"insert into nowhere(a) values {ROWS}", "42P01"),
    ],
)
def test_a_long_insert_is_refused_as_a_short_one_would_be(connection: apsw.Connection, sql: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as refused:
        Authorizer(connection).examine(sql)
    assert refused.value.sqlstate == sqlstate, refused.value.message


def test_a_long_insert_without_parameters_is_not_cut_into_tokens(connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("cut into tokens")

    monkeypatch.setattr(authorizer, "split_statements", refuse)
    monkeypatch.setattr(authorizer, "parameter_markers", refuse)
    Authorizer(connection).examine(f"insert into t(a) values {ROWS}")


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("insert into t(id) values(1), (1)", "23505"),
        ("insert into t(a) values('x'), ('x')", "23505"),
        ("insert into t(b) values(null)", "23502"),
        ("insert into t(b) values(1000)", "23514"),
        ("update child set p = 77", "23503"),
        ("delete from t", "P0001"),
        ("insert into s values('x')", "22P02"),
        ("insert into t(id) values('x')", "22P02"),
        ("select abs(-9223372036854775808)", "22003"),
        ("select json('{')", "22032"),
        ("insert into v values(1)", "42809"),
    ],
)
def test_failures_have_the_sqlstate_that_postgresql_users_expect(connection: apsw.Connection, sql: str, sqlstate: str) -> None:
    connection.execute("drop trigger meddle; insert into t values(5, 'five', 5); insert into child values(5)")
    with pytest.raises(apsw.Error) as failure:
        connection.execute(sql).fetchall()
    error = from_sqlite(failure.value, sql)
    assert error.sqlstate == sqlstate, error.message


def test_an_error_says_where_in_characters() -> None:
    connection = apsw.Connection(":memory:")
    with pytest.raises(SqlError) as refused:
        Authorizer(connection).examine("select 'é', nosuch")
    assert refused.value.position == 13
    connection.close()


def test_columns_and_parameters_are_described(connection: apsw.Connection) -> None:
    prepared = Authorizer(connection).examine("select a as x, b, a || 'z' from t where id = $2 and a = $1 and b = ?")
    assert [(column.name, column.declared_type, column.table, column.origin) for column in prepared.columns] == [
        ("x", "TEXT", "t", "a"),
        ("b", "numeric(5, 2)", "t", "b"),
        ("a || 'z'", None, None, None),
    ]
    assert prepared.parameters == ("$2", "$1", None)


def test_what_runs_is_held_to_its_kind(connection: apsw.Connection) -> None:
    gate = Authorizer(connection)
    for kind, sql, sqlstate in (
        (StatementKind.READ, "insert into t(a) values(1)", "25006"),
        (StatementKind.READ, "create table u(a)", "25006"),
        (StatementKind.WRITE, "create table u(a)", "42501"),
        (StatementKind.WRITE, "update triplicate_state set a = 1", "42501"),
    ):
        with pytest.raises(SqlError) as refused, gate.running(kind):
            connection.execute(sql)
        assert refused.value.sqlstate == sqlstate
    connection.execute("update triplicate_state set a = 1")


@pytest.mark.parametrize(
    "sql",
    [
        "create table u(a text check (triplicate_left(a, 1) = 'x'))",
        'create table u(a text, b text generated always as ("triplicate_left"(a, 1)))',
        "create index i on t(triplicate_left(a, 1))",
        "create index i on t(a) where [Triplicate_Left](a, 1) = 'x'",
        "alter table t add column c text check (triplicate_left(c, 1) = 'x')",
    ],
)
def test_the_definition_of_a_table_calls_no_function_of_ours(connection: apsw.Connection, sql: str) -> None:
    register_scalars(connection)
    with pytest.raises(SqlError) as caught:
        Authorizer(connection).examine(sql)
    assert (caught.value.sqlstate, "triplicate_left()" in str(caught.value).lower()) == ("0A000", True)
    Authorizer(connection).examine("create view w as select triplicate_left(a, 1) as a from t")


def test_a_statement_that_views_and_subqueries_make_too_large_is_refused(connection: apsw.Connection) -> None:
    gate, nested = Authorizer(connection), "t"
    for _ in range(17):
        nested = f"(select a || a as a from {nested})"
    texts = [f"select * from {nested}", f"insert into t(a) select a from {nested}", f"create view w as select a from {nested}"]
    texts += [f"insert into t(a) select '{'x' * 5000}' || a from {nested}", f"create table n(a) as insert into n select a from {nested}"]
    for sql in texts:
        with pytest.raises(SqlError) as refused:
            gate.examine(sql)
        assert refused.value.sqlstate == "54001"
    for level in range(17):
        connection.execute(f"create view v{level} as select a || a as a from {f'v{level - 1}' if level else 't'}")
    with pytest.raises(SqlError, match="would add"):
        gate.examine("select a from v16")
    gate.examine("select a from v9")
    with gate.running(StatementKind.SCHEMA):
        connection.execute("drop view v9; create view v9 as select a from t")
    gate.examine("select a from v16")


def texts(sql: str) -> list[str]:
    return [statement.sql for statement in split_statements(sql, SqlDialect.SQLITE)]


def test_texts_are_split_at_semicolons_that_end_statements() -> None:
    trigger = "create trigger x after insert on t begin update t set a = ';'; select case when 1 then 2 end; end"
    assert texts(f"select ';' -- ; no\n; {trigger}; /* ; */ select \"a;b\", $1;") == [
        "select ';'",
        trigger,
        'select "a;b", $1',
    ]
    assert texts(trigger) == [trigger]
    assert texts("  ;; -- nothing") == []
    assert parameter_markers(sqlite_tokens("select $1, :two, @three, '$4' -- $5")) == {"1": "$1", "two": ":two", "three": "@three"}
    assert savepoint_name('release savepoint "Mixed ""Case"""') == 'Mixed "Case"'
    assert savepoint_name("savepoint Abc") == "abc"
    assert change_images("alter table \"T t\" set (change_images = 'full')") == ("T t", "full")
    assert change_images("alter table t rename to u") is None
