"""Queries in SQLite's dialect that read live tables, as they are given to SQLite."""

from __future__ import annotations

import apsw
import pytest

from triplicate.sql.engine.live_parameters import LiveQuery, live_query


@pytest.mark.parametrize(
    "sql",
    [
        "select 1",
        "select 'from triplicate_nodes'",
        "select triplicate_nodes from t",
        "select * from t -- triplicate_nodes",
        "select * from triplicate_changes",
        "select * from triplicate_nodes('[]')",
        "select a from t order by a, triplicate_nodes",
    ],
)
def test_other_queries_stay(sql: str) -> None:
    assert live_query(sql, 0) is None


@pytest.mark.parametrize(
    ("sql", "parameters", "expected", "tables"),
    [
        ("select * from triplicate_nodes", 0, "select * from triplicate_nodes(?1)", ("triplicate_nodes",)),
        (
            "select * from pg_locks, [triplicate_nodes] n",
            0,
            "select * from pg_locks(?1), [triplicate_nodes](?2) n",
            ("pg_locks", "triplicate_nodes"),
        ),
        (
            "select ? from pg_locks a join PG_LOCKS b where a.pid = ? and b.pid = ?",
            3,
            "select ?1 from pg_locks(?4) a join PG_LOCKS(?4) b where a.pid = ?2 and b.pid = ?3",
            ("pg_locks",),
        ),
        (
            "select :a, @b from pg_locks where :a = ?7 or pid = ?",
            8,
            "select ?1, ?2 from pg_locks(?9) where ?1 = ?7 or pid = ?8",
            ("pg_locks",),
        ),
    ],
)
def test_rows_are_parameters_behind_those_of_the_query(sql: str, parameters: int, expected: str, tables: tuple[str, ...]) -> None:
    assert live_query(sql, parameters) == LiveQuery(expected, tables)


@pytest.mark.parametrize(
    ("sql", "count"), [("select ?, ?", 2), ("select ?3, ?", 4), ("select :a, ?, :a, @a, $a, ?", 5), ("select ?2, :x, ?1, ?", 4)]
)
def test_parameters_have_the_numbers_that_sqlite_gives(sql: str, count: int) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute("create table pg_locks(a); insert into pg_locks values (0)")
    values = [f"value {number}" for number in range(count)]
    ours = live_query(sql + " from pg_locks", count)
    assert ours is not None
    (plain,) = connection.execute(sql, values)
    (numbered,) = connection.execute(ours.sql.replace(f"pg_locks(?{count + 1})", f"(select ?{count + 1})"), [*values, "rows"])
    assert numbered == plain
