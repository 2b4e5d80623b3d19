"""Results of PostgreSQL's expressions, run by SQLite."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import apsw
import pytest

from tests.unit.sql.pg.translation_rig import NOW, TranslatedDatabase
from triplicate.errors import SqlError
from triplicate.sql.core import value_checks
from triplicate.sql.core.interface import Value
from triplicate.sql.executor.scalars import _extreme, register_scalars
from triplicate.sql.executor.text_scalars import format_text
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import FORMAT_ARGUMENT_MAX


@pytest.fixture
def database() -> TranslatedDatabase:
    return TranslatedDatabase()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("7 / 2", 3), ("-7 / 2", -3), ("-7 % 3", -1), ("7.5 % 2", 1.5), ("2 ^ 3 ^ 2", 64.0), ("-2 ^ 2", 4.0), ("1 + 2 * 3", 7),
        ("0.1 + 0.2", 0.3), ("1.0 / 3", "0.33333333333333333333"), ("n * 3", 6.75), ("10 / 4.0", 2.5), ("sum(n) over ()", 2.25),
        ("round(2.5)", 3), ("round(-2.5)", -3), ("round(2.5::float8)", 2.0), ("round(3.5::float8)", 4.0), ("round(2.345, 2)", 2.35),
        ("trunc(-2.7)", -2), ("trunc(2.789, 2)", 2.78), ("ceil(2.1)", 3), ("floor(-2.1)", -3), ("abs(-5)", 5), ("sign(-2)", -1.0),
        ("mod(7, 3)", 1), ("div(7, 2)", 3), ("power(2, 10)", 1024.0), ("sqrt(16)", 4.0), ("ln(1)", 0.0), ("log(100)", 2.0),
        ("log(2, 8)", 3.0), ("exp(0)", 1.0),
        ("substr('abcdef', 2, 3)", "bcd"), ("substr('abcdef', 0, 3)", "ab"), ("substr('abcdef', -1, 4)", "ab"),
        ("substring('abc' from 2)", "bc"),
        ("substring('abcdef' from 2 for 3)", "bcd"), ("substring('abcdef' for 2)", "ab"), ("left('abc', 2)", "ab"),
        ("left('abc', -1)", "ab"),
        ("right('abc', 2)", "bc"), ("right('abc', -1)", "bc"), ("right('abc', 0)", ""), ("lpad('7', 3, '0')", "007"),
        ("rpad('abc', 2)", "ab"),
        ("repeat('ab', 2)", "abab"), ("reverse('abc')", "cba"), ("strpos('abc', 'c')", 3), ("position('c' in 'abc')", 3),
        ("split_part('a,b,c', ',', 2)", "b"), ("split_part('a,b,c', ',', -1)", "c"), ("split_part('a', ',', 5)", ""),
        ("concat('a', null, 1, true, 1.5)", "a1t1.5"), ("concat_ws('-', 'a', null, 'b')", "a-b"),
        ("initcap('hello wORLD')", "Hello World"),
        ("quote_literal('it''s')", "'it''s'"),
        ("quote_literal('a\\b')", "E'a\\\\b'"),
        ("translate('12345', '143', 'ax')", "a2x5"), ("chr(228)", "ä"), ("ascii('ä')", 228), ("to_hex(-1)", "ffffffffffffffff"),
        ("md5('a')", "0cc175b9c0f1b6a831c399e269772661"), ("trim(both 'x' from 'xax')", "a"), ("trim(leading from '  a ')", "a "),
        ("length('äö')", 2), ("octet_length('äö')", 4), ("char_length('ab')", 2), ("starts_with('abc', 'ab')", 1),
        ("greatest(1, null, 3)", 3),
        ("format('%s%s%s%s%s|%s', 1, 1.50, true, null, '2020-01-01'::date, 1e20::float8)", "11.50t2020-01-01|1e+20"),
        ("least('b', 'a', null)", "a"), ("greatest(null, null)", None), ("coalesce(null, 5)", 5),
        ("coalesce(a)", 20),
        ("'a' || null", None), ("'a' || true", "atrue"), ("'a' || 1.50", "a1.50"), ("b || 1", "abc1"),
        ("b like 'a%'", 1), ("b like 'A%'", 0), ("b ilike 'A%'", 1), ("'a%c' like 'a\\%c'", 1), ("'abc' like 'a\\%c'", 0),
        ("'a%c' like 'a!%c' escape '!'", 1), ("b ~ '^a'", 1), ("b !~ '^a'", 0), ("b ~* 'ABC'", 1), ("null ~ 'a'", None),
        ("b ~~ 'a%'", 1),
        ("b like null", None), ("a is distinct from null", 1), ("null is not distinct from null", 1), ("(1 = null) is unknown", 1),
        ("a = any(array[20, null])", 1), ("a = any(array[1, null])", None), ("a <> all('{1,2}'::int[])", 1),
        ("a = any('{}'::int[])", 0),
        ("a = any(null::int[])", None), ("a in (select id from o)", 0), ("20 = any(select a from t)", 1),
        ("d + 1", "2024-01-06"), ("d - 5", "2023-12-31"), ("d - '2024-01-01'", 4), ("date '2024-03-01' - d", 56), ("d < ts", 1),
        ("ts = tz", 1),
        ("d = ts", 0), ("extract(year from ts)", 2024), ("extract(dow from d)", 5), ("extract(epoch from tz)", 1704448800),
        ("extract(second from time '10:11:12.5')", 12.5), ("date_part('month', d)", 1.0),
        ("date_trunc('month', ts)", "2024-01-01 00:00:00"),
        ("date_trunc('Months', ts)", "2024-01-01 00:00:00"), ("date_trunc('yrs', ts)", "2024-01-01 00:00:00"),
        ("date_trunc('millisecond', timestamp '2024-01-05 01:02:03.456789')", "2024-01-05 01:02:03.456000"),
        ("extract(milliseconds from time '10:11:12.5')", 12500), ("extract(mins from ts)", 0), ("date_part('qtr', ts)", 1.0),
        ("date_trunc('week', tz)", "2024-01-01 00:00:00+00:00"), ("ts at time zone 'UTC'", "2024-01-05 10:00:00+00:00"),
        ("tz at time zone 'utc'", "2024-01-05 10:00:00"), ("tz::date", "2024-01-05"), ("to_timestamp(0)", "1970-01-01 00:00:00+00:00"),
        ("now() = current_timestamp", 1), ("'2000-01-01' < now()", 1), ("now()::text", NOW.replace("+00:00", "+00")),
        ("j ->> 'a'", "1"), ("j ->> 'b'", "x"), ("j ->> 'c'", None), ("j -> 'a'", "1"), ("j ->> '$.a'", 1), ("j ->> 'missing'", None),
        ("a::text", "20"), ("f::text", "true"), ("c::int", 2), ("1.50::text", "1.50"), ("1e20::float8::text", "1e+20"),
        ("true::int", 1),
        ("case when a > 5 then 'big' else 'small' end", "big"), ("(a, b) = (20, 'abc')", 1), ("row(1, 2) < row(1, 3)", 1),
        ("(select max(id) from o)", 2), ("exists (select 1 from o where id = 9)", 0), ("length(gen_random_uuid()::text)", 36),
        ("random() < 1.0 and random() >= 0.0", 1), ("~ 5 + 1", -7), ("1 << 3", 8), ("5 & 3 | 8", 9), ("cast('12' as integer)", 12),
        ("null / 0", None), ("a / null", None), ("(a + 1) / (a - 17)", 7), ("(0 - 7) / (a - 18)", -3), ("(a - 27) % (a - 17)", -1),
        ("- 9223372036854775808", -(2**63)), ("-1.50", -1.5), ("-n", -2.25), ("abs(n - 5)", 2.75),
        ("tz::text", "2024-01-05 10:00:00+00"),
        ("'10:00:00.5'::time::text", "10:00:00.5"), ("(select id from o where s = 'y')", 2), ("(select id from o where s = 'z')", None),
        ("(select s from o where o.id = t.id)", "x"), ("(1, 'x') = (select id, s from o where id = 1)", 1),
        ("octet_length(substr(x'', 1, 1))", 0),
        ("'{\"$\":1}'::json ->> '$'", "1"), ("'[1,2]'::json -> 1", "2"), ("'[\"a\",2]'::json ->> 0", "a"),
        ("upper('aä')", "Aä"), ("nullif(a, 20)", None), ("a between 1 and 20", 1), ("'b' between 'a' and 'c'", 1),
        ("a / 3.0 > 7", 0), ("a / 3.0 between 6 and 7", 1), ("greatest(a / 3.0, 7)", 7), ("case when a < 0 then c else a end / 8", 2.5),
        ("avg(a + 0.5) over ()", 20.5), ("n::text", "2.25"), ("(n * 2)::text", "4.50"), ("c / (c - 1)", 3.0),
        ("b || ts", "abc2024-01-05 10:00:00"),
        ("nullif('1', '01')::int", 1), ("a << -62", 80), ("format('%s%%|%3s|', f, 'x')", "t%|  x|"),
    ],
)  # fmt: skip
def test_an_expression_has_postgresql_s_value(database: TranslatedDatabase, expression: str, expected: Value) -> None:
    found = database.value(expression)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("expression", "state"),
    [
        ("1 / 0", "22012"), ("a / (a - a)", "22012"), ("a % 0", "22012"), ("1.5 / 0", "22012"), ("mod(a, 0)", "22012"),
        ("div(a, 0)", "22012"),
        ("1.5 % 0", "22012"), ("sqrt(-1)", "2201F"), ("ln(0)", "2201E"), ("log(-1)", "2201E"), ("power(0, -1)", "2201F"),
        ("power(-8, 0.5)", "2201F"),
        ("exp(1000)", "22003"), ("power(10, 400)", "22003"), ("(a + 40000000000)::int", "22003"), ("b::int", "22P02"),
        ("substr('a', 1, -1)", "22011"),
        ("split_part('a', ',', 0)", "22023"), ("chr(0)", "54000"), ("repeat('abc', 100000000)", "54000"),
        ("lpad('a', 999999999)", "54000"),
        ("b ~ ('(a)\\1' || b)", "0A000"), ("b like (b || '\\')", "22025"), ("extract(nothing from ts)", "22023"),
        ("date_trunc('x', ts)", "22023"),
        ("extract(hour from d)", "0A000"),
        ("(a + 1) / (a - 20)", "22012"), ("(a + 1) % (a - 20)", "22012"), ("(select id from o)", "21000"), ("-d", "42883"),
        ("sum(d) over ()", "42883"), ("format('%I', b)", "0A000"), ("(select id from o limit -1)", "2201W"),
        ("a + 9223372036854775807 - 9223372036854775807", "22003"), ("(a + 9223372036854775807)::text", "22003"),
        ("c * 1e308::float8 * 10", "22003"), ("c / 1e-308::float8 / 1e-308::float8", "22003"), ("sum(b)", "42883"), ("d::time", "42846"),
        ("log10(-1)", "2201E"), ("substring(b from '1')", "0A000"), ("1.5 & 1", "42883"),
    ],
)  # fmt: skip
def test_an_expression_fails_with_postgresql_s_error(database: TranslatedDatabase, expression: str, state: str) -> None:
    with pytest.raises(SqlError) as failed:
        database.value(expression)
    assert failed.value.sqlstate == state


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select id from t order by a", [3, 1, 2]),
        ("select id from t order by a desc", [2, 1, 3]),
        ("select id from t order by a desc nulls last", [1, 3, 2]),
        ("select row_number() over (order by a) from t order by id", [2, 3, 1]),
        ("select * from generate_series(1, 3)", [1, 2, 3]),
        ("select g * 2 from generate_series(5, 1, -2) as s(g)", [10, 6, 2]),
        ("select * from generate_series(3, 1)", []),
        ("select n from (values (1, 'a'), (2, 'b')) as v(n, s) where s = 'b'", [2]),
        ("select a from t where a is not null union all select 5 order by 1", [-3, 5, 20]),
        ("select id from t where d in ('2024-1-5', '2024-02-29') order by 1", [1, 3]),
        ("select sum(n) from t", [2.35]),
        ("select bool_or(f) from t", [1]),
        ("select string_agg(b, '-' order by b desc) from t", ["abc-ABC%"]),
        ("with recursive r(n) as (select 1 union all select n + 1 from r where n < 3) select n from r order by n desc", [3, 2, 1]),
        ("insert into o(id, s) values (1, 'q') returning s", ["q"]),
        ("delete from o using t where t.id = o.id and t.a = 20; ".rstrip("; "), []),
        ("select id from t offset 2", [3]),
        ("select count(*) from t group by b order by 1", [1, 1, 1]),
        ("select upper(b) || 'x' from t group by upper(b) order by 1", ["ABC%x", "ABCx", None]),
        ("select b from t group by id order by id", ["abc", "ABC%", None]),
        ("select t.b from t join o on o.id = t.id group by t.id, o.id order by t.id", ["abc", "ABC%"]),
        ("select date_trunc('year', d) z from t where d is not null group by z", ["2024-01-01 00:00:00+00:00"]),
        ("select a + 1 from t where a > 0 group by 1", [21]),
        ("select x.b from t as x group by x.b, a having max(c) > 2", ["ABC%"]),
        ("select * from o group by id, s order by 1", [1, 2]),
        ("select b, (select max(s) from o where o.id = max(t.id)) from t where id = 1 group by b", ["abc"]),
        ("select 1 union all select 2 intersect select 2", [1, 2]),
        ("(select 1) union (select 2 order by 1 limit 1) order by 1 desc", [2, 1]),
        ("((select 3 as x))", [3]),
        ("select id from t limit null offset null", [1, 2, 3]),
    ],
)
def test_a_statement_gives_postgresql_s_rows(database: TranslatedDatabase, sql: str, expected: list[Value]) -> None:
    assert [row[0] for row in database.rows(sql)] == expected


def test_array_parameters_keep_the_rules_of_null(database: TranslatedDatabase) -> None:
    for array, expected in (("[20, 5]", 1), ("[5]", 0), ("[5, null]", None), ("[]", 0), (None, None)):
        assert database.value("a = any($1)", array) == expected
    for array, expected in (("[20, 5]", 0), ("[5]", 1), ("[5, null]", None), ("[]", 1), (None, None)):
        assert database.value("a <> all($1)", array) == expected
    assert database.value("y = any($1)", '["01", "02"]') == 1


def test_a_view_can_call_them(database: TranslatedDatabase) -> None:
    database.connection.execute("create view v as select triplicate_left(b, 1) as x from t where id = 1")
    assert database.connection.execute("select x from v").fetchall() == [("a",)]


def test_an_index_serves_what_it_served(database: TranslatedDatabase) -> None:
    database.connection.execute("create index ta on t(a); create index tb on t(b); create index tu on t(upper(b))")
    for sql in (
        *("select * from t where a = $1::int", "select id from t where a = any($1)", "select b from t where b like 'ab%'"),
        *("select a from t order by a", "select id from t where upper(b) = $1", "select * from t where id = '5'"),
    ):
        plan = " ".join(str(row[3]) for row in database.rows(f"explain query plan {sql}", *(["1"] if "$1" in sql else [])))
        assert "INDEX" in plan or "PRIMARY KEY" in plan, f"{sql}: {plan}"
        assert "TEMP B-TREE" not in plan, f"{sql}: {plan}"


LONG = "9" * 5000


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'1e1000000000'::numeric > 1", "22003"), ("1e50000000", "22003"), ("-1e50000000", "22003"), ("1e50000000::bigint", "22003"),
        ("1e50000000::text", "22003"), ("1e9999999999999999999", "22003"), ("1e-1000000000", "22003"), ("1e-16384", "22003"),
        ("1e131072", "22003"), ("1e131071 > 1", 1), ("0e1000000000", 0), ("0e1000000000::text", "0"),
        ("'[1e1000000000]'::jsonb", "22003"), ("'1e1000000000'::jsonb", "22003"), ("'[1e1000000000]'::json", "[1e1000000000]"),
        ("round('1e1000000000'::numeric)", "22003"), ("abs('-1e1000000000'::numeric)", "22003"),
        ("n * 1e131000 * 1e131000", "22003"), ("1e-10000 * 1e-10000", 0), ("(n * 0 + 1e131071) * 9 > 0", 1),
        ("(n * 0 + 1e131071) * 11 > 0", "22003"),
        ("round(1.5, 2000000000)", 1.5), ("round(n, 1001)", 2.25), ("trunc(n, 5000)", 2.25), ("round(n, -2000000000)", 0),
        ("length(round(1.5, 2000000000)::text)", 2002), (f"length(round(1.5, {LONG})::text)", 2002), ("ceil(n * 1e1100) > 1", 1),
        ("1.5::numeric(5, 2000000000)", "22023"), ("1.5::numeric(5, -2000000000)", "22023"),
        (f"{LONG}", LONG), (f"-{LONG}", "-" + LONG), (f"{LONG}::bigint", "22003"), (f"'{LONG}'::bigint", "22003"),
        (f"{LONG}::text", LONG), (f"n * 0 + {LONG}", LONG), (f"('{LONG}'::numeric - {LONG[:-1]}8)", 1), (f"mod({LONG}, 10)", 9),
        (f"div({LONG}, 1e4999)", 9), (f"'[{LONG}]'::jsonb = '[{LONG}]'::jsonb", 1), (f"'[{LONG}]'::json", f"[{LONG}]"),
        ("0x" + "f" * 5000 + "::bigint", "22003"), ("repeat('9', 300000)::numeric > 1", "22003"),
        ("(1e3000 + 1) / 2 > 1e2999", 1), (f"{LONG} / {LONG}", 1),
    ],
)  # fmt: skip
def test_a_number_is_never_written_out_beyond_the_limits(database: TranslatedDatabase, expression: str, expected: Value) -> None:
    tracemalloc.start()
    try:
        found: Value = database.value(expression)
    except SqlError as refused:
        found = refused.sqlstate
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == expected
    assert peak_bytes < 8_000_000


@pytest.mark.parametrize("text", ["1e1000000000", "-1e1000000000", "1e-1000000000", "1e99999999999999999999", "9" * 5000])
def test_a_parameter_is_never_written_out_beyond_the_limits(text: str) -> None:
    for oid in (types.NUMERIC, types.INT8):
        with pytest.raises(SqlError) as refused:
            types.decode_parameter(text.encode(), oid, False)
        assert refused.value.sqlstate == ("22P02" if oid == types.INT8 and "e" in text else "22003"), oid


@pytest.mark.parametrize("is_binary", [False, True])
def test_a_stored_number_is_never_written_out_beyond_the_limits(is_binary: bool) -> None:
    """A table that another program has made may have such a text in a column of this type."""
    if is_binary:
        with pytest.raises(SqlError) as refused:
            types.encode_value("1e1000000000", types.NUMERIC, True)
        assert refused.value.sqlstate == "22P02"
    else:
        assert types.encode_value("1e1000000000", types.NUMERIC, False) == b"1e1000000000"


def test_json_has_numbers_of_any_length() -> None:
    assert types.decode_parameter(f"[1e1000000000, {LONG}]".encode(), types.JSON, False) == f"[1e1000000000, {LONG}]"


def test_a_call_is_passed_no_more_than_two_long_texts_at_once(database: TranslatedDatabase) -> None:
    """The interface to SQLite copies all arguments before another thread can run."""
    passed: list[int] = []
    originals: dict[str, Callable[..., Value]] = {
        "greatest": partial(_extreme, max),
        "least": partial(_extreme, min),
        "format": format_text,
    }
    for name, original in originals.items():

        def noted(*arguments: Value, original: Callable[..., Value] = original) -> Value:
            passed.append(sum(len(str(value)) for value in arguments))
            return original(*arguments)

        database.connection.create_scalar_function(f"triplicate_{name}", noted, -1, deterministic=True)
    longs = [f"repeat('{letter}', {FORMAT_ARGUMENT_MAX})" for letter in "abcdefghijkl"]
    assert database.value(f"left(greatest({', '.join(longs)}), 1)") == "l"
    assert database.value(f"left(least({', '.join(longs)}), 1)") == "a"
    assert len(passed) == 2 * (len(longs) - 1)
    assert max(passed) == 2 * FORMAT_ARGUMENT_MAX
    passed.clear()
    with pytest.raises(SqlError, match="takes texts of up to") as refused:
        database.value("format('%s%s%s%s%s', 1, 2, 3, 4, repeat('a', 1000000))")
    assert (refused.value.sqlstate, max(passed)) == ("54000", len("%s" * 5) + 4 + FORMAT_ARGUMENT_MAX + 1)
    assert database.value("length(format('%s%s%s%s', 2, 3, 4, repeat('a', 1000000)))") == 1_000_003


def test_an_aggregate_keeps_a_limited_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_checks, "AGGREGATE_BYTES", 1000)
    connection = apsw.Connection(":memory:")
    register_scalars(connection)
    query = (
        "with recursive c(n) as (select 1 union all select n + 1 from c limit 300) select triplicate_join_distinct(n % {0}, ',', 0) from c"
    )
    assert connection.execute(query.format(100)).fetchall()
    with pytest.raises(SqlError, match="may keep") as refused:
        connection.execute(query.format(290)).fetchall()
    assert refused.value.sqlstate == "54000"
