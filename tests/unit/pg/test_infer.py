"""What is told of a statement's types from its text alone."""

from __future__ import annotations

import pytest

from triplicate.sql.pg import types
from triplicate.sql.pg.infer import parameter_types, result_types
from triplicate.sql.pg.lexer import split_statements, strip_catalog_prefix

TABLES = {"t": [("a", "INTEGER"), ("b", "TEXT"), ("c", "REAL"), ("d", "TIMESTAMP")], "u": [("a", "UUID"), ("e", "BOOLEAN"), ("x", "")]}
I, T, F, D = types.INT8, types.TEXT, types.FLOAT8, types.TIMESTAMP  # noqa: E741


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("INSERT INTO t VALUES ($1,$2,$3,$4)", [I, T, F, D]),
        ("insert into t(b, a) values ($1, $2), ($3, $4) on conflict do update set c = $5", [T, I, T, I, F]),
        ("insert or replace into main.t(d) values ($1)", [D]),
        ("insert into t(a, b) select $1, $2", [I, T]),
        ("select * from t x where x.a = $1 and b like $2 and c between $3 and $4 limit $5 offset $6", [I, T, F, F, I, I]),
        ("select * from t limit $1, $2", [I, I]),
        ("update t set c = c + $1, d = $2 where a in ($3, $4)", [F, D, I, I]),
        ("delete from t where $1 = t.a", [I]),
        ("select cast($1 as integer), $2", [I, None]),
        ("select * from t join u on u.a = $1 where e = $2", [types.UUID, types.BOOL]),
        ('select * from "t" where "b" <> $1 -- = $2', [T]),
        ("select * from t where rowid = $1", [I]),
        ("select * from nowhere where x = $1", [None]),
    ],
)
def test_a_parameter_has_the_type_of_the_column_it_meets(sql: str, expected: list[int | None]) -> None:
    told = parameter_types(sql, TABLES)
    assert [told.get(f"${number}") for number in range(1, len(expected) + 1)] == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select count(*), avg(a) x, sum(a) as s, a, b||'x', a+1 from t", [I, F, I, I, T, I]),
        ("select c*2, max(d), 1, 'x', length(b) n, a*1.0 from t", [F, D, I, T, I, F]),
        ("select t.*, count(*) c from t", [None] * 4 + [I]),
        ("insert into t values(1) returning a, a + 1", [I, I]),
        ("select exists(select 1 from t)", [I]),
        ("with x as (select 1) select count(*) from x", [I]),
        ("select cast(a as text), a = 1, (a), coalesce(b, 'x') from t", [T, I, I, T]),
        ("select case when a then 1 else 2.5 end from t", [None]),
        ("values (1)", [None]),
        ("select x, e from u", [None, types.BOOL]),
    ],
)
def test_an_expression_has_the_type_its_functions_and_operators_give(sql: str, expected: list[int | None]) -> None:
    assert result_types(sql, len(expected), TABLES) == expected


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("", []),
        (" ; ;; -- nothing\n", []),
        ("select ';' /* ; */ -- ;\n; select \"a;b\"", ["select ';' /* ; */ -- ;", 'select "a;b"']),
        (
            "create trigger x after insert on t begin update t set a = case when 1 then 2 end; select 1; end; select 1",
            ["create trigger x after insert on t begin update t set a = case when 1 then 2 end; select 1; end", "select 1"],
        ),
        ("begin; commit", ["begin", "commit"]),
    ],
)
def test_statements_are_cut_at_their_own_semicolons(sql: str, parts: list[str]) -> None:
    assert split_statements(sql) == parts


def test_the_catalogue_prefix_goes_before_functions_only() -> None:
    assert strip_catalog_prefix("select pg_catalog.f(1), 'pg_catalog.g('") == "select f(1), 'pg_catalog.g('"
