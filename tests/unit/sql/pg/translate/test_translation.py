"""The text for SQLite and the types for the client, by statement."""

from __future__ import annotations

import apsw
import pytest

from tests.unit.sql.pg.translation_rig import TranslatedDatabase
from triplicate.errors import SqlError
from triplicate.sql.pg.values import types

I, I4, T, F, N, B, D = types.INT8, types.INT4, types.TEXT, types.FLOAT8, types.NUMERIC, types.BOOL, types.DATE  # noqa: E741
TS, TZ, U, J = types.TIMESTAMP, types.TIMESTAMPTZ, types.UUID, types.JSON


@pytest.fixture
def database() -> TranslatedDatabase:
    return TranslatedDatabase()


@pytest.mark.parametrize(
    ("sql", "expected", "oids"),
    [
        ("update t set a=$2::int where id=$1::int", "update t set a=?2 where id=?1", (I4, I4)),
        ("select $2::text b, $1::text a", "select ?2 b, ?1 a", (T, T)),
        ("select $1::int, $1::text", "select ?1, CAST(?1 AS TEXT)", (I4,)),
        ("select ?, ?2, ?", "select ?1, ?2, ?3", (T, T, T)),
        ("select a from t where b = $1 and a > $2", "select a from t where b = ?1 and a > ?2", (T, I)),
        ("select '5'::int, 2.5::int, '2024-1-5'::date, '1.50'::numeric", "select 5, 3, '2024-01-05', 1.5", ()),
        ("insert into t(c) values (1.5), (-1.5), (+1.5)", "insert into t(c) values (1.5), (-1.5), (+1.5)", ()),
        ("select id from t where d = '2024-1-5'", "select id from t where d = '2024-01-05'", ()),
        ("select id from t where f = 'true' and a = '20'", "select id from t where f = 1 and a = 20", ()),
        (
            "select id from t where a = any($1)",
            "select id from t where a IN (SELECT value FROM json_each(coalesce(?1, '[null]')))",
            (1016,),
        ),
        (
            "select id from t where y = any($1)",
            "select id from t where y IN (SELECT unhex(value) FROM json_each(coalesce(?1, '[null]')))",
            (1001,),
        ),
        ("select id from t where a <> all('{20,-3}'::int[])", "select id from t where a NOT IN (20, -3)", ()),
        ("select id from t where a = any(array[1, $1])", "select id from t where a IN (1, ?1)", (I,)),
        ("select b like 'a*_%' from t", "select b GLOB 'a[*]?*' from t", ()),
        ("select b like $1 from t", "select b GLOB triplicate_glob(?1, '\\') from t", (T,)),
        ("select b not ilike 'A%' from t", "select b NOT LIKE 'A%' ESCAPE '\\' from t", ()),
        ("select id from t order by a, b desc", "select id from t order by a NULLS LAST, b desc NULLS FIRST", ()),
        ("select id from t order by a nulls first", "select id from t order by a nulls first", ()),
        (
            "select (a + 1) / (a - 3), a % 3 from t",
            "select triplicate_quotient(triplicate_whole(a + 1), triplicate_whole(a - 3)), a % 3 from t",
            (),
        ),
        ("select a / id, 5 % a from t", "select a / triplicate_divisor(id, a), 5 % triplicate_divisor(a, 5) from t", ()),
        ("select a || b || 1 from t where a || b + 1", None, "42883"),
        ("select b || (a + 1) from t", "select b || (triplicate_whole(a + 1)) from t", ()),
        ("select ~ a + 1, -a ^ 2 from t", "select ~ (triplicate_whole(a + 1)), triplicate_power(triplicate_whole(-a), 2) from t", ()),
        ("select a = b like 'x' from t", "select a = (b GLOB 'x') from t", ()),
        ("select now(), current_timestamp, current_date", "select ?1, ?1, ?2", ()),
        ("select $1, now()", "select ?1, ?2", (T,)),
        ("insert into t(ts, d) values (now(), now())", "insert into t(ts, d) values (?1, ?2)", ()),
        ("insert into t(n, a) values ('1.005', 1.5)", "insert into t(n, a) values (1.01, 2)", ()),
        ("insert into t(n) values ($1)", "insert into t(n) values (triplicate_stored_numeric(?1, 1700, 10, 2))", (N,)),
        ("select id from public.t where public.t.id = 1", "select id from t where t.id = 1", ()),
        ("select pg_catalog.length('a')", "select length('a')", ()),
        ("select E'a\\'b', $$c'd$$", "select 'a''b', 'c''d'", ()),
        ("select id from t limit all offset 1 rows", "select id from t LIMIT -1 OFFSET 1", ()),
        ("select id from t fetch first row only", "select id from t LIMIT 1", ()),
        ("select id from t for update", "select id from t ", ()),
        ("update t x set a = 1 returning x.a, x.*", "update t AS x set a = 1 returning a, *", ()),
        ("delete from o using t where t.id = o.id", "delete from o WHERE EXISTS (SELECT 1 FROM t where t.id = o.id)", ()),
        (
            "insert into o select id, b from t on conflict do nothing",
            "insert into o select id, b from t WHERE true on conflict do nothing",
            (),
        ),
        ("insert into o(id, s) values (default, 'x')", "insert into o(s) values ('x')", ()),
        ("insert into o(id) values (default)", "insert into o DEFAULT VALUES", ()),
        ("select * from (values (1)) v(n)", "select * from (WITH v(n) AS (values (1)) SELECT * FROM v) AS v", ()),
        ("select j ->> 'a' from t", "select triplicate_json_part_text(j, 'a', 0) from t", ()),
        ("select /* a /* b */ c */ 1", "select                   1", ()),
        ("pragma user_version", "pragma user_version", ()),
        ("select * from t where t match $1 order by rank limit 1 2", "select * from t where t match ?1 order by rank limit 1 2", (T,)),
        ("explain query plan select $1::int", "explain query plan select ?1", (I4,)),
        ('select b collate "C" from t', "select b collate BINARY from t", ()),
        (
            "select a::int8, b::text, a::text, b::varchar(2) from t",
            "select a, b, CAST(a AS TEXT), triplicate_to_varchar(b, 25, 2) from t",
            (),
        ),
        ("select cast(b as blob) from t", "select cast(b as blob) from t", ()),
    ],
)
def test_a_statement_is_put_into_sqlite_s_words(database: TranslatedDatabase, sql: str, expected: str | None, oids: object) -> None:
    if expected is None:
        with pytest.raises(SqlError) as refused:
            database.translate(sql)
        assert refused.value.sqlstate == oids
        return
    translation = database.translate(sql)
    assert (translation.sql, translation.parameter_oids) == (expected, oids)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("insert into t(a, b, c, ts) values ($1,$2,$3,$4)", [I, T, F, TS]),
        ("insert into t(b, a) values ($1, $2), ($3, $4) on conflict (id) do update set c = $5", [T, I, T, I, F]),
        ("insert or replace into main.t(d) values ($1)", [D]),
        ("insert into t(a, b) select $1, $2", [I, T]),
        ("select * from t x where x.a = $1 and b like $2 and c between $3 and $4 limit $5 offset $6", [I, T, F, F, I, I]),
        ("select * from t limit $1, $2", [I, I]),
        ("update t set c = c + $1, d = $2 where a in ($3, $4)", [F, D, I, I]),
        ("delete from t where $1 = t.a", [I]),
        ("select cast($1 as integer), $2", [I4, T]),
        ("select * from t join o on o.id = $1 where f = $2", [I, B]),
        ('select * from "t" where "b" <> $1 -- = $2', [T]),
        ("select * from t where rowid = $1", [I]),
        ("select * from nowhere where z = $1", [T]),
        ("select coalesce($1, 5), case when $2 then $3 else 'x' end, length($4)", [I, B, T, T]),
        ("select (select max(id) from o) = $1, $2 is null", [I, T]),
        ("with q as (select id, d from t) select * from q where d > $1", [D]),
        ("select * from (select tz as m from t) s where m < $1", [TZ]),
        ("select $1 from t group by $2", [T, T]),
        ("update t set a = $1 where u = $2", [I, U]),
    ],
)
def test_an_open_parameter_has_the_type_of_its_context(database: TranslatedDatabase, sql: str, expected: list[int]) -> None:
    assert list(database.translate(sql).parameter_oids) == expected


def test_a_type_that_the_client_gives_stays(database: TranslatedDatabase) -> None:
    assert database.translate("select $1::text, $2", (I4, F)).parameter_oids == (I4, F)
    assert database.translate("select $1::text", (I4,)).sql == "select CAST(?1 AS TEXT)"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select count(*), avg(a) x, sum(a) as s, a, b||'x', a+1 from t group by a, b", [I, N, I, I, T, I]),
        ("select c*2, 1, 'x', length(b) n, a*1.0 from t", [F, I, T, I, N]),
        ("insert into o values(1) returning id, id + 1", [I, I]),
        ("select exists(select 1 from t), true, a > 1, not f, a is null, b like 'x', a in (1), a between 1 and 2 from t", [B] * 8),
        ("with q as (select 1) select count(*) from q", [I]),
        ("select cast(a as text), a = 1, (a), coalesce(b, 'x'), ts - 1 from t", None),
        ("select cast(a as text), a = 1, (a), coalesce(b, 'x') from t", [T, B, I, T]),
        ("select case when f then 1 else 2.5 end, case when f then 'a' end from t", [N, T]),
        ("values (1, 'a')", [I, T]),
        ("select x, f, x + 1 from t", [None, B, None]),
        ("select now(), localtimestamp, current_date, d + 1, d - d, now()::date from t", [TZ, TS, D, D, I, D]),
        ("select max(d), min(b), sum(c), round(max(n)), extract(year from max(d)), date_trunc('day', max(ts)) from t", [D, T, F, N, N, TS]),
        ("select j -> 'a', j ->> 'a', gen_random_uuid(), md5('a'), string_agg(b, ',') over () from t", [J, T, U, T, T]),
        ("select a from t union select 2.5", [N]),
        ("select q.* from (select id, d::text from t) q", [I, T]),
    ],
)
def test_a_result_has_the_type_that_postgresql_gives_it(database: TranslatedDatabase, sql: str, expected: list[int | None] | None) -> None:
    if expected is None:
        with pytest.raises(SqlError, match="interval"):
            database.translate(sql)
        return
    outputs = database.translate(sql).outputs
    assert outputs is not None
    assert [oid for _, oid in outputs] == expected


def test_a_result_has_the_name_that_postgresql_gives_it(database: TranslatedDatabase) -> None:
    outputs = database.translate(
        'select ID, a as Foo, b "Bar", 1, count(*) over (), 5::int, a::text, case when f then 1 end, exists(select 1), coalesce(a), now(), '
        "(select s from o limit 1), 'x'::numeric(3,1)::text, a + 1, extract(year from d), trim(b), "
        "(select 1 as q), case when f then 1 end::text from t".replace("'x'", "'1'")
    ).outputs
    assert outputs is not None
    assert [name for name, _ in outputs] == [
        *(
            "id",
            "foo",
            "Bar",
            "?column?",
            "count",
            "int4",
            "a",
            "case",
            "exists",
            "coalesce",
            "now",
            "s",
            "text",
            "?column?",
            "extract",
            "btrim",
            "q",
            "text",
        )
    ]


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("select $name", "42601"),
        ("select :name", "42601"),
        ("select @name", "42601"),
        ("select $1a", "42601"),
        ("select $0", "42P02"),
        ("select $99999", "42P02"),
        ("select $2", "42P18"),
        ("select 'a' 'b'", "42601"),
        ("select 'abc'::int", "22P02"),
        ("select 99999999999::int", "22003"),
        ("select 'x'::nothing", "42704"),
        ("select '1 day'::interval", "0A000"),
        ("select id from t where a = 'abc'", "22P02"),
        ("select id from t where d = '2024-13-01'", "22008"),
        ("select id from t where u = 'x'", "22P02"),
        ("select id from t where f = 'maybe'", "22P02"),
        ("select id from t where b = 5", "42883"),
        ("select id from t where lower(b) = 5", "42883"),
        ("select id from t where a in (1, '2', 'x')", "22P02"),
        ("select 1 where 'x'", "22P02"),
        ("select 1 from t where b", "42804"),
        ("select $1 + $2", "42725"),
        ('select "abc" from t', "42703"),
        ("select id, count(*) from t", "42803"),
        ("select a from t having true", "42803"),
        ("select a from t union select 'x'", "22P02"),
        ("select 1 union select 1, 2", "42601"),
        ("insert into t(d) values (5)", "42804"),
        ("insert into t(a) values ('x')", "22P02"),
        ("update t set a = default", "0A000"),
        ("select distinct on (a) a from t", "0A000"),
        ("select id from t for update skip locked", "0A000"),
        ("select * from t, lateral (select 1) q", "0A000"),
        ("insert into t(id) values (1) on conflict on constraint t_pkey do nothing", "0A000"),
        ("select array[1, 2]", "0A000"),
        ("select a < any(array[1]) from t", "0A000"),
        ("select b similar to 'x' from t", "0A000"),
        ("select b like 'x\\' from t", "22025"),
        ("select a # 1 from t", "0A000"),
        ("select @ a from t", "0A000"),
        ("select ts + d from t", "0A000"),
        ("select to_char(ts, 'x') from t", "0A000"),
        ("select current_time", "0A000"),
        ("select ts at time zone 'Europe/Berlin' from t", "0A000"),
        ("select a between symmetric 2 and 1 from t", "0A000"),
        ("update t set a = 1 from o returning *", "0A000"),
        ("delete from t using o returning t.id", "0A000"),
        ("select a b c, d::text from t", "0A000"),
        ("insert into o(id, id) values (1, 2)", "42701"),
        ("update t set a = 1, a = 2", "42601"),
        ("insert into t(n) values (1234567890123456789.5)", "22003"),
        ("insert into t(c) values (1e400)", "22003"),
        ("insert into t(c) values (-1e-400)", "22003"),
        ("update t set c = 1e-400", "22003"),
        ("select '1e-400'::float8", "22003"),
        ("select '-1e-50'::real", "22003"),
        ("update t set a = 1 where id = (select id from o)", "21000"),
        ("select id from t offset -1", "2201X"),
        ("select b, a from t group by b", "42803"),
        ("select * from t group by b", "42803"),
        ("select s from o group by id", "42803"),
        ("select date_trunc('year', d) y from t group by y", "42803"),
        ("select b from t group by a having c > 1", "42803"),
        ("select q.v from (select id as k, s as v from o) q group by q.k", "42803"),
        ("select upper(b), a from t group by upper(b)", "42803"),
        ("select 1 || 2", "42883"),
        ("select b * 2 from t", "42883"),
        ("select a = any($1) from t where b = any(5)", "42809"),
    ],
)
def test_what_cannot_mean_the_same_is_refused(database: TranslatedDatabase, sql: str, state: str) -> None:
    with pytest.raises(SqlError) as refused:
        database.rows(sql)
    assert refused.value.sqlstate == state


def test_an_error_has_its_place_in_the_client_s_text(database: TranslatedDatabase) -> None:
    sql = "select '2024-1-5'::date, $1::int, nothing from t"
    translation = database.translate(sql)
    assert translation.origin(translation.sql.index("nothing") + 1) == sql.index("nothing") + 1
    assert database.translate("pragma x").origin(5) == 5


def test_what_is_in_a_statement_is_not_confused_with_another_one(database: TranslatedDatabase) -> None:
    """Translations are remembered by text, tables and given types."""
    first = database.translate("select a from t where a = $1")
    database.connection.execute("alter table t rename column a to a2; alter table t add column a text")
    second = database.translate("select a from t where a = $1")
    assert (first.parameter_oids, second.parameter_oids) == ((I,), (T,))


def test_a_star_over_using_names_its_columns(database: TranslatedDatabase) -> None:
    database.connection.execute("create table l(x, y); create table r(z, y); insert into l values (1, 2); insert into r values (3, 2)")
    assert database.rows("select * from l join r using (y)") == [(2, 1, 3)]
    assert database.rows("select * from l natural full join r") == [(2, 1, 3)]
    assert database.rows("select * from (l join r using (y)) j where j.y = 2") == [(2, 1, 3)]


def test_a_query_in_set_is_computed_before_rows_change(database: TranslatedDatabase) -> None:
    database.connection.execute("create table n(k integer primary key, v); insert into n values (1, 10), (2, 20), (3, 30)")
    database.rows("update n set v = (select o.v from n o where o.k = n.k - 1)")
    assert database.rows("select v from n order by k") == [(None,), (10,), (20,)]


def test_a_chain_of_joins_has_a_limit(database: TranslatedDatabase) -> None:
    with pytest.raises(SqlError) as refused:
        database.translate("select 1 from t" + " cross join t" * 5000)
    assert refused.value.sqlstate == "54001"


@pytest.mark.parametrize("count", [2, 99, 100, 101, 150, 151, 250, 3000])
def test_a_long_chain_means_the_same(database: TranslatedDatabase, count: int) -> None:
    numbers = range(count)
    text = " || ".join(f"('{number % 10}')" if number % 3 else f"'{number % 10}'" for number in numbers)
    assert database.value(text) == "".join(str(number % 10) for number in numbers)
    for word, others, one in (("or", False, True), ("and", True, False)):
        for place in {0, 1, count // 2, count - 1}:
            terms = [f"(id = 1) = {str(one if number == place else others).lower()}" for number in numbers]
            terms = [f"({term})" if number % 3 else term for number, term in enumerate(terms)]
            assert database.value(f" {word} ".join(terms)) == int(one)
        assert database.value(f" {word} ".join([str(others).lower()] * count)) == int(others)
    mixed = " or ".join(f"id = {number + 2} and true" for number in numbers)
    assert database.value(mixed) == 0
    assert database.value(f"not ({mixed}) and ({mixed} or id = 1)") == 1


@pytest.mark.parametrize("expression", ["(" * 101 + "1" + ")" * 101, "+".join(["1"] * 152), "not " * 101 + "f", "1" + "::int" * 151])
def test_an_expression_has_a_depth_and_a_length(database: TranslatedDatabase, expression: str) -> None:
    with pytest.raises(SqlError) as refused:
        database.translate(f"select {expression} from t")
    assert refused.value.sqlstate == "54001"


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("select max(a) from t", "max"),
        ("select count(*) from t", "count"),
        ("select case when a > 1 then 1 else 2 end from t", "case"),
        ("select a + 1 from t", "?column?"),
        ("select a::text from t", "a"),
        ("select current_date", "current_date"),
        ("select a from t union all select 2.5::float8", "a"),
        ("(select upper(b) from t) limit 1", "upper"),
    ],
)
def test_results_of_subqueries_have_the_names_that_postgresql_gives_them(query: str, name: str) -> None:
    """SQLite has others, and takes a name in quotes that it does not know for a text."""
    database = TranslatedDatabase()
    rows = database.rows(query)
    for around in (f'select "{name}" from ({query}) q', f'with q as ({query}) select q."{name}" from q', f"select * from ({query}) q"):
        assert database.rows(around) == rows


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("select (select count(*) from (select upper(s) from o where s <> upper) q) from (select 'x' as upper) w", 1),
        ("select (select count(*) from (select max(id) from o where o.id < max) q) from (select 100 as max) w", 1),
        ("select (select count(*) from (select count(*) from o having count(*) > count) q) from (select 1 as count) w", 1),
        ("select (with q as (select upper(s) from o join t on s <> upper) select count(*) from q) from (select 'x' as upper) w", 3),
        ("select \"max\" from (select max(max) from (select 7 as max) i where max > 3) q", 7),
    ],
)  # fmt: skip
def test_a_result_without_an_alias_hides_no_column_of_a_query_around(query: str, value: int) -> None:
    """SQLite would find an alias first."""
    assert TranslatedDatabase().rows(query) == [(value,)]


def test_a_result_without_an_alias_is_no_column_of_its_own_query() -> None:
    with pytest.raises(apsw.SQLError, match="no such column: upper"):
        TranslatedDatabase().rows("select * from (select upper(s) from o where upper = 'X') q")
