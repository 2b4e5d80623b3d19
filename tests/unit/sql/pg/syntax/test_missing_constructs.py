"""Constructs of PostgreSQL that SQLite reads as something else."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.ddl.definition_rewriter import rewrite_definition
from triplicate.sql.pg.rewrite.catalogue_queries import catalogue_query
from triplicate.sql.pg.translate.translation import translate

TABLES = (("t", (("id", "int"), ("j", "jsonb"))),)
REFUSED = [
    ("select id from t group by rollup(id)", "ROLLUP is not available"),
    ("select id from t group by id, rollup(id)", "ROLLUP is not available"),
    ("select id from t group by distinct cube (id)", "CUBE is not available"),
    ("insert into t(id) select id from t group by grouping sets ((id), ())", "GROUPING SETS is not available"),
    ("create view v as select id, grouping(id) from t group by id", "GROUPING is not available"),
    ("select relname from pg_class group by rollup(relname)", "ROLLUP is not available"),
    ("select j ? 'a' from t", r"operator \? is not available"),
    ("select 1 from t where not t.j ? $1", r"operator \? is not available"),
    ("select 1 from t where (j -> 'a') ? 'b'", r"operator \? is not available"),
    ("select '{}'::jsonb ?| array['a']", r"operator \?\| is not available"),
    ('delete from t where "j" ?& $1', r"operator \?& is not available"),
    ("select j @? '$.a' from t", r"operator @\? is not available"),
    ("select j @@ '$.a' from t", "operator @@ is not available"),
    ("select relname ? 'a' from pg_class", r"operator \? is not available"),
]
TAKEN = [
    "select ? from t where id = ? and id between ? and ? and id in (?, ?) limit ? offset ?",
    "select case ? when ? then ? else ? end from t order by ?",
    "select rollup, cube from (select 1 as rollup, 2 as cube) s group by rollup, cube",
    "update t set id = ? where id is not ? returning ?",
    "insert into t values (?, ?)",
]


@pytest.mark.parametrize(("sql", "message"), REFUSED)
def test_they_are_refused_by_their_names(sql: str, message: str) -> None:
    statement = statement_of(sql)
    with pytest.raises(SqlError, match=message) as refused:
        assert catalogue_query(statement) is not None or translate(statement, TABLES) is None
    assert refused.value.sqlstate == "0A000"
    assert refused.value.hint


@pytest.mark.parametrize("sql", TAKEN)
def test_parameters_and_names_of_columns_are_none_of_them(sql: str) -> None:
    assert translate(statement_of(sql), TABLES).sql


@pytest.mark.parametrize(
    ("sql", "message", "hint"),
    [
        ("create policy p on t using (true)", "CREATE POLICY is not supported", "views"),
        ("alter table t enable row level security", "ALTER TABLE … ENABLE ROW LEVEL SECURITY is not supported", "views"),
        ("create function f() returns trigger as 'x' language sql", "CREATE FUNCTION is not supported", "CREATE TRIGGER"),
    ],
)
def test_the_hints_name_what_there_is(sql: str, message: str, hint: str) -> None:
    with pytest.raises(SqlError, match=message) as refused:
        rewrite_definition(statement_of(sql))
    assert hint in (refused.value.hint or "")
