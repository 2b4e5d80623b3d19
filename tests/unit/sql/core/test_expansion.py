"""The size of statements that grow in SQLite, against the steps of the programs that it makes of them."""

from __future__ import annotations

from collections.abc import Callable

import apsw
import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.expansion import EXPANSION_MAX, SchemaSizes, fold
from triplicate.sql.core.lexer import sqlite_tokens
from triplicate.sql.storage.sqlite_schema import growing_relations

TABLES = "create table t(a, b, c); create view v0 as select a, b from t"
STEPS_MAX = 150_000
"""Steps of SQLite's largest program for a statement that is allowed. It makes them within some 30 ms."""


def refused(connection: apsw.Connection, sql: str) -> bool:
    sizes = SchemaSizes(*growing_relations(connection))
    try:
        sizes.check(sqlite_tokens(sql))
    except SqlError as error:
        return error.sqlstate == "54001"
    return False


def is_bounded(connection: apsw.Connection, sql: str) -> bool:
    """Whether it is refused, here or by SQLite, or its program is short."""
    if refused(connection, sql):
        return True
    try:
        return sum(1 for _ in connection.execute(f"explain {sql}")) < STEPS_MAX
    except apsw.SQLError as error:
        return "nested too deep" in str(error)


SHAPES: dict[str, Callable[[str], str]] = {
    "doubled": lambda below: f"select a || a as a, b from {below}",
    "without as": lambda below: f"select a || a a, b from {below}",
    "in brackets": lambda below: f"select (a) || (a) as [a], b from {below}",
    "quoted": lambda below: f'select "A" || `a` as "a", b from {below}',
    "qualified": lambda below: f"select x.a || [x].a as a, b from {below} as x",
    "the name of a collated column": lambda below: f"select (a || a) collate nocase as a, b from (select a collate nocase, b from {below})",
    "crossed": lambda below: f"select a || b as b, b || a as a from {below} where a > b",
    "joined": lambda below: f"select coalesce(x.a, y.b) as a, y.b from {below} x left join {below} y on x.a = y.b",
    "joined by a call": lambda below: (
        f"select x.a, y.b from t y left join {below} x on coalesce(x.a, (select max(b) from {below}), 1) = y.b"
    ),
    "joined in brackets": lambda below: f"select x.a || x.a as a, y.b from (t y join {below} x on x.a = y.b)",
    "distinct": lambda below: f"select distinct x.a, y.b from {below} x, {below} y",
    "within expressions": lambda below: f"select (select max(a) from {below}) as a, (select min(b) from {below}) as b",
    "in a condition": lambda below: f"select a, b from {below} where exists (select 1 from {below} z where z.a = b)",
    "union": lambda below: f"select a, b from {below} union select b, a from {below}",
    "union all": lambda below: " union all ".join([f"select a, b from {below}"] * 6),
    "a later part of a union": lambda below: f"select 1 as a, 2 as b union all select a || a, b from {below}",
    "case": lambda below: f"select case when a in (select a from {below}) then a end as a, b from {below}",
    "renamed": lambda below: f"with x(p, q) as (select a || a, b from {below}) select p as a, q as b from x",
    "star": lambda below: f"with x as (select * from {below}) select y.*, b as z from (select a || a as a, b from x) y",
    "values": lambda below: (
        f"select column1 as a, 1 as b from (values ((select max(a) from {below}), 1), ((select min(a) from {below}), 2))"
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_views_that_grow_are_refused_before_sqlite_is_slow(shape: str) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute(TABLES)
    for level in range(1, 60):
        query = SHAPES[shape](f"v{level - 1}")
        if refused(connection, f"create view v{level} as {query}"):
            break
        connection.execute(f"create view v{level} as {query}")
        for use in (
            f"select * from v{level}",
            f"insert into t(a) select a from v{level}",
            f"update t set a = (select max(a) from v{level})",
        ):
            assert is_bounded(connection, use)
    assert 3 < level < 59


@pytest.mark.parametrize("shape", SHAPES)
def test_queries_within_queries_are_refused_as_views_are(shape: str) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute(TABLES)
    common = "with c0 as (select a, b from t)"
    for level in range(1, 30):
        common += f", c{level} as ({SHAPES[shape](f'c{level - 1}')})"
        assert is_bounded(connection, f"{common} select * from c{level}")
    assert refused(connection, f"{common} select * from c29")


@pytest.mark.parametrize("shape", ["doubled", "without as", "in brackets", "quoted", "qualified", "renamed", "joined in brackets"])
def test_subqueries_that_grow_are_refused(shape: str) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute(TABLES)
    nested = "v0"
    for _ in range(40):
        assert is_bounded(connection, f"select * from {nested} s")
        nested = f"({SHAPES[shape](nested)})"
    assert refused(connection, f"select * from {nested} s")


GENERATED = [
    ", ".join(["c0 text", *(f"c{n} text as (c{n - 1} || c{n - 1})" for n in range(1, 40))]),
    ", ".join([*(f"c{n} text generated always as (c{n - 1} || c{n - 1}) virtual" for n in range(39, 0, -1)), "c0 text"]),
]


@pytest.mark.parametrize("columns", GENERATED)
def test_generated_columns_that_grow_are_refused(columns: str) -> None:
    table = f"create table g({columns})"
    assert refused(apsw.Connection(":memory:"), table)
    sizes = SchemaSizes([("g", table)], [])
    for sql in (
        "select c39 from g",
        "insert into g(c0) values ('x')",
        "update g set c0 = 'x' where c39 > ''",
        "delete from g",
        "alter table g add column d as (c39)",
    ):
        with pytest.raises(SqlError, match="would add more than 10"):
            sizes.check(sqlite_tokens(sql))
    sizes.check(sqlite_tokens("select c0 from t"))
    stored = f"create table g({columns.replace('virtual', '').replace(')', ') stored')})"
    assert not refused(apsw.Connection(":memory:"), stored)


def test_triggers_count_with_those_of_the_tables_that_they_change() -> None:
    connection = apsw.Connection(":memory:")
    connection.execute(TABLES)
    connection.execute("create table u(a); create table w(a)")
    for level in range(1, 10):
        connection.execute(f"create view v{level} as {SHAPES['distinct'](f'v{level - 1}')}")
    body = "begin insert into u select a from v8; end"
    for number in range(4):
        assert not refused(connection, f"create trigger x{number} after insert on t {body}")
        connection.execute(f"create trigger x{number} after insert on t {body}")
    connection.execute("create trigger y after insert on w begin update t set a = 1; insert into t(a) values (1); end")
    for number in range(4, 20):
        connection.execute(f"create trigger x{number} after insert on t {body}")
    assert refused(connection, "insert into t(a) values (1)")
    assert refused(connection, "insert into w values (1)")
    assert not refused(connection, "insert into u values (1)")
    assert refused(connection, f"create trigger z after insert on u begin insert into u {'select a from v9 union all ' * 12} select 1; end")


def test_what_does_not_grow_is_not_refused() -> None:
    connection = apsw.Connection(":memory:")
    connection.execute(TABLES)
    for level in range(1, 90):
        connection.execute(f"create view v{level}(a, b, c) as select a, b, a || b from v{level - 1} where a > 1 and b < 2")
    assert not refused(connection, "select a, b, c from v89 where c > 'x'")
    long = ", ".join(["(1, 'x')"] * 30_000)
    assert not refused(connection, f"insert into t(a, b) values {long}")
    assert not refused(connection, f"select * from t where a in ({', '.join(map(str, range(60_000)))}) and b in (select b from t)")
    assert not refused(connection, "insert into t values " + ", ".join(["(1, (select max(a) from t), 3)"] * 10_000))
    assert not refused(connection, "with recursive r(n) as (select 1 union all select n + 1 + n from r) select n from r limit 5")
    connection.execute("create view own as select 1 as a")
    connection.execute("drop view own; create view own as select a from own")
    assert not refused(connection, "select a from own")


def test_the_size_is_of_the_named_column_only() -> None:
    sizes = SchemaSizes([("V", "create view V as select a, a || a || a || a as b from t")], [])
    assert sizes.size(sqlite_tokens("select b, b, b from v")) - sizes.size(sqlite_tokens("select a, a, a from v")) == 3 * (10 - 1)
    assert sizes.size(sqlite_tokens("select b from t")) == sizes.size(sqlite_tokens("select a from t"))
    assert (fold("ÄbC"), fold("AbC")) == ("Äbc", "abc")


def test_deep_queries_are_refused() -> None:
    connection = apsw.Connection(":memory:")
    connection.execute("create table t(a); create view v0 as select a from t")
    assert refused(connection, "select a from " + "(select a from " * 150 + "t" + ")" * 150)
    for level in range(1, 130):
        connection.execute(f"create view v{level} as select a from v{level - 1}")
    assert refused(connection, "select a from v129")
    assert not refused(connection, "select a from v90")
    assert EXPANSION_MAX > 1000


def test_a_size_that_was_too_long_to_read_is_not_kept() -> None:
    schema = SchemaSizes([("v", "create view v as select a || a as a from w"), ("w", "create view w as select a || a as a from t")], [])
    text = sqlite_tokens("select a from v")
    with pytest.raises(SqlError, match="too long"):
        schema.check(text, 60)
    assert schema.size(text) == schema.size(text, 0) > 50
