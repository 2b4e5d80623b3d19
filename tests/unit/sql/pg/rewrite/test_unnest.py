"""Many rows in one INSERT, as arrays side by side."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.rewrite.unnest import unnest_as_values


def test_arrays_become_rows() -> None:
    sql = (
        'INSERT INTO "t" ("a", "b") SELECT * FROM UNNEST((\'{x,NULL,"it\'\'s, \\"q\\""}\')::varchar[], (\'{1,2,3}\'::int4[])::integer[])'
        ' ON CONFLICT DO NOTHING RETURNING "t"."id"'
    )
    rows = "('x', '1'), (NULL, '2'), ('it''s, \"q\"', '3')"
    assert unnest_as_values(statement_of(sql)).sql == f'INSERT INTO "t" ("a", "b") VALUES {rows} ON CONFLICT DO NOTHING RETURNING "t"."id"'


def test_a_shorter_array_is_filled_with_null() -> None:
    assert (
        unnest_as_values(statement_of("INSERT INTO t SELECT * FROM UNNEST('{1}'::int[], '{a,b}'::text[])")).sql
        == "INSERT INTO t VALUES ('1', 'a'), (NULL, 'b')"
    )


@pytest.mark.parametrize("sql", ["SELECT * FROM UNNEST('{1}'::int[])", "INSERT INTO unnest VALUES (1)", "INSERT INTO t SELECT 'unnest'"])
def test_other_statements_stay(sql: str) -> None:
    assert unnest_as_values(statement_of(sql)).sql == sql


@pytest.mark.parametrize("argument", ["$1::int[]", "x", "ARRAY['a']::text[]", "'{a}'::text[] || '{b}'::text[]", "'{}'::int[]"])
def test_what_is_no_constant_array_is_refused(argument: str) -> None:
    with pytest.raises(SqlError) as refused:
        unnest_as_values(statement_of(f"INSERT INTO t SELECT * FROM UNNEST({argument})"))
    assert refused.value.sqlstate == "0A000"
