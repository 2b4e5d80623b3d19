"""Views have PostgreSQL's meaning: their own expressions, and the queries over their columns."""

from __future__ import annotations

import pytest

from tests.unit.sql.pg.raw_client import SYNC, RawClient, bind, describe, execute, parse, query
from tests.unit.sql.pg.server_rig import Served, play

TABLES = """
create table o (id bigint primary key, cust varchar(9), amount numeric(10,2), odate date, paid boolean, placed timestamptz, c real);
insert into o values (1, 'ann', 20.00, '2024-01-15', true, '2024-01-15 10:00+00', 1.5),
    (2, 'ann', 5.50, '2024-03-01', false, '2024-03-01 10:00+00', 2), (3, 'Bob', 10.10, '2023-12-31', true, '2023-12-31 10:00+00', 3);
create view last_orders as select cust, max(odate) as last_order, min(placed) as first_at, sum(amount) as total, max(amount) as top,
    count(*) from o group by cust;
create view flags as select id, amount > 10 as big, odate + 1 as due, amount / 3 as third, cust like 'b%' as b, amount * 2 as twice
    from o;
create view plain as select * from o where odate > '2024-1-5';
create view cast_to as select id, cast(amount * 2 as numeric(12,2)) as n2, odate::timestamp as at, cust || '!' as shout from o;
create view of_views as select l.*, f.due from last_orders l join flags f on f.due > l.last_order;
create view many as select id, amount from o union all select id, amount * 2 from o;
create view named(a, b) as values (1, date '2024-1-5'), (2, null);
create view big as select id, amount * 1000000000000000 as huge, id * 9000000000000000000 as far from o;
create view twins as with o as (select 7 as id) select p.id, o.id as other from public.o p, o where p.id = 2;
create view today as select current_date as d, now() > '2024-1-1' as later;
"""
ANSWERS = [
    ("select last_order + 30 from last_orders where cust = 'ann'", "1082", "2024-03-31"),
    ("select cust from last_orders where last_order > '2024-1-5'", "1043", "ann"),
    ("select cust from last_orders where last_order = '2024-3-1'", "1043", "ann"),
    ("select cust from last_orders where first_at < '2024-1-1'", "1043", "Bob"),
    ("select cust from last_orders where total > '20'", "1043", "ann"),
    ("select total from last_orders where cust = 'ann'", "1700", "25.50"),
    ("select top / 3 from last_orders where cust = 'ann'", "1700", "6.6666666666666667"),
    ("select total * 1.1 from last_orders where cust = 'Bob'", "1700", "11.110"),
    ("select date_trunc('month', last_order) from last_orders where cust = 'ann'", "1184", "2024-03-01 00:00:00+00"),
    ("select count from last_orders where cust = 'ann'", "20", "2"),
    ("select big from flags where id = 1", "16", "t"),
    ("select due from flags where due = '2024-1-16'", "1082", "2024-01-16"),
    ("select third from flags where id = 1", "1700", "6.6666666666666667"),
    ("select b from flags where id = 3", "16", "f"),
    ("select twice from flags where id = 3", "1700", "20.20"),
    ("select amount / 3 from plain where id = 1", "1700", "6.6666666666666667"),
    ("select count(*) from plain", "20", "2"),
    ("select c / 2 from plain where id = 2", "701", "1"),
    ("select n2 / 3 from cast_to where id = 1", "1700", "13.3333333333333333"),
    ("select at from cast_to where at = '2024-1-15'", "1114", "2024-01-15 00:00:00"),
    ("select total, due - last_order from of_views where cust = 'Bob' and due = '2024-3-2'", "1700,20", "10.10,62"),
    ("select sum(amount) from many", "1700", "106.80"),
    ("select b + 1 from named where a = 1", "1082", "2024-01-06"),
    ("select id from big where huge > '20000000000000000' or huge = 5500000000000000.00 order by huge desc", "20", "2"),
    ("select id, other from twins", "20,20", "2,7"),
    ("select later from today where d > '2024-1-1'", "16", "t"),
]


@pytest.mark.parametrize(("sql", "oids", "row"), ANSWERS)
def test_a_query_over_a_view_has_the_types_of_the_views_query(sql: str, oids: str, row: str) -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query(TABLES))
        answers = await client.send(query(sql))
        assert [field.rsplit(":", 1)[1] for field in answers[0].removeprefix("T ").split(",")] == oids.split(",")
        assert answers[1] == f"D {row}"
        prepared = await client.send(parse(sql), describe(), bind(), execute(), SYNC)
        assert [answers[0], answers[1]] == prepared[2:3] + prepared[4:5]

    play(body)


def test_parameters_beside_a_views_columns_have_their_types() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query(TABLES))
        sent = await client.send(
            parse("select cust from last_orders where total > $1 and last_order > $2"),
            describe(),
            bind(b"20", b"2024-1-5"),
            execute(),
            SYNC,
        )
        assert sent == ["1", "t", "T cust:1043", "2", "D ann", "C SELECT 1", "Z I"]

    play(body)


def test_arithmetic_of_a_view_fails_beyond_its_type() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query(TABLES))
        assert (await client.send(query("select far::text from big where id = 2")))[-2:] == ["E ERROR 22003", "Z I"]

    play(body)


def test_a_view_keeps_its_columns_and_their_names() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(
            query("create table t(a int, b text); insert into t values (1, 'x'); create view v as select *, a * 2 as c from t")
        )
        await client.send(query("alter table t add column d int; alter table t rename column b to e; alter table t rename to u"))
        assert (await client.send(query("select * from v")))[:2] == ["T a:20,b:25,c:20", "D 1,x,2"]

    play(body)


@pytest.mark.parametrize(
    "text",
    [
        "with x as (select a from t) select x.a from x",
        "with x as (select t.a, b from t), y as (select a from x) select y.a from y",
        "with recursive x as (select a from t union all select a + 1 from x where a < 1) select x.a from x",
        "select x.a from (select a from t) x",
        "select a from (select a, b from t order by a) as x where a > 0 group by a",
        "select x.a from (select * from t) x join (select a from t group by a) y on x.a = y.a",
        "select a from t where a in (select a from (select a from t) x)",
        "with x as (select * from t) select x.a from x",
        "select z.a from (select a from t) as z union select a from (select a from t) q",
    ],
)
def test_a_column_that_a_view_takes_out_of_a_query_within_is_renamed(text: str) -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query(f"create table t(a int, b text); insert into t values (1, 'x'); create view v as {text}"))
        assert await client.send(query("alter table t rename column a to aa")) == ["C ALTER TABLE", "Z I"]
        assert (await client.send(query("select a from v")))[:2] == ["T a:20", "D 1"]

    play(body)


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("create view v as select a, a from t", "42701"),
        ("create view v(x, y, z) as select a, b from t", "42601"),
        ("create view v as select a from t where a = $1", "42P02"),
        ("create view v as select a from t where b = current_user", "0A000"),
        ("create view v as select a from t where a = b", "42883"),
        ("create view v as select a, max(b) from t", "42803"),
        ("create view v as select a from t where to_char(a) = '1'", "0A000"),
    ],
)
def test_a_view_without_postgresqls_meaning_is_refused(sql: str, sqlstate: str) -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query("create table t(a int, b text)"))
        assert await client.send(query(sql)) == [f"E ERROR {sqlstate}", "Z I"]

    play(body)


def test_a_view_without_types_is_described_as_text() -> None:
    async def body(client: RawClient, s: Served) -> None:
        await client.send(query("create table t(a int, n numeric(10,2)); insert into t values (1, 20.00), (2, 10.10)"))
        s.databases.shop._connection.execute("create view v as select a, n * 2 as m from t")
        assert await client.send(query("select a, m from v order by a")) == ["T a:20,m:25", "D 1,40", "D 2,20.2", "C SELECT 2", "Z I"]

    play(body)


def test_the_stored_text_makes_the_same_view_again() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query(TABLES))
        text = (await client.send(query("select sql from sqlite_schema where name = 'last_orders'")))[1].removeprefix("D ")
        assert "/* types 1 | - | date | timestamp with time zone | numeric(1000,2) | numeric(1000,2) | bigint */" in text
        before = await client.send(query("select *, top / 3 from last_orders order by cust"))
        await client.send(query(f"drop view of_views; drop view last_orders; {text}"))
        assert await client.send(query("select *, top / 3 from last_orders order by cust")) == before
        assert (await client.send(query("select sql from sqlite_schema where name = 'last_orders'")))[1] == f"D {text}"

    play(body)


@pytest.mark.parametrize("sql", ["n > '5'", "d = '2024-1-5'", "id = 3", "n between 3 and $1"])
def test_a_condition_on_a_plain_column_of_a_view_uses_its_index(sql: str) -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(
            query("create table t(id int primary key, n numeric(10,2), d date); create index tn on t(n); create index td on t(d)")
        )
        await client.send(query("create view v as select *, n * 2 as m from t; create view w as select v.* from v where m > 1"))
        answers = await client.send(
            parse(f"explain query plan select * from w where {sql}"), bind(*[b"5"] * sql.count("$")), execute(), SYNC
        )
        assert any("SEARCH t USING INDEX" in row for row in answers), answers

    play(body)
