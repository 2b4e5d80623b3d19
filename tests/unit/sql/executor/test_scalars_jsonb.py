"""Values of jsonb that are equal in PostgreSQL are equal here, however they are written, and they are not ordered."""

from __future__ import annotations

import pytest

from tests.unit.sql.pg.translation_rig import TranslatedDatabase
from triplicate.errors import SqlError

EQUAL = (
    """'{"a":1}'::jsonb = '{"a":1.0}'::jsonb""",
    """'{"b":[1.50], "a":-0.0}'::jsonb = '{"a":0, "b":[15e-1]}'::jsonb""",
    "'1'::jsonb = '1.00'::jsonb",
    "k = '7.0'",
    "'7.0' = k",
    "k = '7'::json::jsonb",
    "coalesce(k, '1') = '7'",
    "'7' = coalesce(k, '1')",
    "(select k from s where id = 1) = '7.0'",
    "'7.0' in (k)",
    "k in ('7.0', '8')",
    "coalesce(k, '[]') in (select k from s where id = 1)",
    "k in (select '7.0'::jsonb)",
    "case when id = 1 then k else '[]' end = '7'",
    "(k, id) = ('7.00', 1)",
    "k is not distinct from '7.0'",
    "'[7]'::jsonb -> 0 = k",
    "'[7.0]'::jsonb -> 0 = '7'",
    "nullif(k, '7.0') is null",
    "(select count(*) from (select k from s union select '7.0'::jsonb union select '[1.0]'::jsonb) u) = 2",
    "(select count(*) from (select distinct l from (select lag(k, 0) over (order by id) as l from s) q where l = '7') r) = 1",
)
UNORDERED = (
    "select '[10]'::jsonb > '[9]'::jsonb",
    "select k < '1' from s",
    "select k between '1' and '2' from s",
    "select least(k, '1') from s",
    "select k from s order by k",
    "select k as x from s order by x desc",
    "select id, k from s order by 2",
    "select k from s union all select k from s order by 1",
    "select k from s order by k -> 'a'",
    "select row_number() over (order by k) from s",
    "select string_agg('x', ',' order by k) from s",
    "select (k, 1) < ('1', 2) from s",
)


@pytest.fixture
def database() -> TranslatedDatabase:
    found = TranslatedDatabase()
    found.connection.execute("create table s(id integer primary key, k jsonb); insert into s values(1, '7'), (2, '[1]')")
    return found


@pytest.mark.parametrize("comparison", EQUAL)
def test_equal_values_are_equal(database: TranslatedDatabase, comparison: str) -> None:
    assert database.rows(f"select {comparison} from s where id = 1") == [(1,)]


@pytest.mark.parametrize("sql", UNORDERED)
def test_values_have_no_order(database: TranslatedDatabase, sql: str) -> None:
    with pytest.raises(SqlError) as refused:
        database.rows(sql)
    assert (refused.value.sqlstate, refused.value.hint) == (
        "0A000", "Order by a field of a type, (value ->> 'a')::numeric, or by the text, value::text."
    )  # fmt: skip


def test_equal_values_are_not_stored_twice_in_a_key(database: TranslatedDatabase) -> None:
    database.connection.execute("create unique index one on s(k)")
    for text in ("7.0", "[1.00]", "[ 1 ]"):
        with pytest.raises(Exception, match="UNIQUE constraint failed"):
            database.rows(f"insert into s(k) values('{text}')")


def test_groups_are_those_of_equal_values(database: TranslatedDatabase) -> None:
    database.rows("""insert into s(k) values('{"a": 1.0, "b": 2}'), ('{"b":2.00,"a":1}'), ('7.0')""")
    assert sorted(database.rows("select count(*) from s group by k")) == [(1,), (2,), (2,)]
    assert database.rows("select count(distinct k) from s") == [(3,)]


def test_the_least_jsonb_is_no_function(database: TranslatedDatabase) -> None:
    with pytest.raises(SqlError, match=r"function max\(jsonb\) does not exist"):
        database.rows("select max(k) from s")


def test_json_and_jsonb_are_not_compared(database: TranslatedDatabase) -> None:
    with pytest.raises(SqlError, match="operator does not exist: jsonb = json"):
        database.rows("select k = '1'::json from s")
