"""Triggers have PostgreSQL's meaning: their conditions and their statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sql.pg.node_rig import ServedCluster, play_served
from tests.unit.sql.pg.raw_client import RawClient, query
from tests.unit.sql.pg.server_rig import Served, play
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.rewrite.create_trigger import trigger_parts

TABLES = """
create table o (id bigint primary key, s text, n numeric(10,2), d date, i int, b boolean);
create table l (id bigserial primary key, what text, third numeric(10,2), due date, at timestamptz, big boolean, c char(5));
create trigger added after insert on o when new.d > '2024-1-5' and new.s like 'a%' begin
    insert into l(what, third, due, at, big, c) values ('in:' || new.b, new.n / 3, new.d + 1, now(), new.n > '9', 'x  ');
    update o set i = new.i * 2 where id = new.id and d = '2024-2-1';
end;
create trigger gone before delete on o begin
    select raise(ignore) where old.n > 10;
    delete from l where due = old.d + 1;
end;
"""
ROWS = "insert into o values (1, 'ann', 20, '2024-2-1', 5, true), (2, 'Ann', 20, '2024-2-1', 5, true), (4, 'ann', 2, '2024-1-13', 5, false)"


def test_a_trigger_has_postgresqls_meaning() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query(TABLES))
        await client.send(query(ROWS))
        rows = await client.send(query("select what, third, due, at > '2024-1-1', big, c || '.' from l order by id"))
        assert rows[1:3] == ["D in:true,6.67,2024-02-02,t,t,x.", "D in:false,0.67,2024-01-14,t,f,x."]
        assert (await client.send(query("select id, i from o order by id")))[1:4] == ["D 1,10", "D 2,5", "D 4,5"]
        await client.send(query("delete from o"))
        assert (await client.send(query("select id from o order by id")))[1:3] == ["D 1", "D 2"]
        assert (await client.send(query("select what from l")))[1:-2] == ["D in:true"]

    play(body)


def test_the_stored_text_makes_the_same_trigger_again() -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query(TABLES))
        text = (await client.send(query("select sql from sqlite_schema where name = 'added'")))[1].removeprefix("D ")
        assert "begin /* translated 1 */\n    insert into l(" in text
        assert await client.send(query(f"drop trigger added; {text}")) == ["C DROP TRIGGER", "C CREATE TRIGGER", "Z I"]
        assert (await client.send(query("select sql from sqlite_schema where name = 'added'")))[1] == f"D {text}"

    play(body)


@pytest.mark.parametrize(
    ("action", "sqlstate"),
    [
        ("insert into l(what) values (current_user)", "0A000"),
        ("insert into l(what) values ($1)", "42P02"),
        ("insert into l(due) values ('2024-13-1')", "22008"),
        ("insert into l(what) select s from o where s = 3", "42883"),
        ("insert into l(what) select s from o group by id + 1", "42803"),
        ("insert into l(what) values (to_char(new.d, 'x'))", "0A000"),
        ("update l set what = 'x' where due > new.n", "42883"),
    ],
)
def test_a_trigger_without_postgresqls_meaning_is_refused(action: str, sqlstate: str) -> None:
    async def body(client: RawClient, _: Served) -> None:
        await client.send(query(TABLES))
        made = await client.send(query(f"create trigger x after insert on o begin delete from l where id = 0; {action}; end"))
        assert made == [f"E ERROR {sqlstate}", "Z I"]

    play(body)


@pytest.mark.parametrize(
    ("sql", "rows", "parts"),
    [
        ("create trigger a after insert on t begin select 1; end;", ("new",), ["select 1"]),
        ("create trigger if not exists a delete on main.t for each row begin select 1;select 2; end", ("old",), ["select 1", "select 2"]),
        (
            'create trigger "update" instead of update of a, b on t when new.a = 1 begin select 1; end',
            ("new", "old"),
            ["SELECT new.a = 1", "select 1"],
        ),
        (
            "create trigger a after insert on t begin select 'begin /* translated 1 */'; end",
            ("new",),
            ["select 'begin /* translated 1 */'"],
        ),
        ("create trigger a after insert on t begin select case when 1 then 2 end; end", ("new",), ["select case when 1 then 2 end"]),
    ],
)
def test_the_parts_of_a_trigger_are_found(sql: str, rows: tuple[str, ...], parts: list[str]) -> None:
    found = trigger_parts(statement_of(sql))
    assert found is not None
    assert (found.table, found.rows, [part.sql for part in found.queries]) == ("t", rows, parts)


def test_columns_may_be_named_by_keywords() -> None:
    sql = "create trigger a after insert on t when new.values > 0 begin insert into u (values, set) select exists, 1 as from from t; end"
    found = trigger_parts(statement_of(sql))
    assert found is not None
    texts = ['SELECT new."values" > 0', 'insert into u ("values", "set") select "exists", 1 as "from" from t']
    assert [part.sql for part in found.queries] == texts


@pytest.mark.parametrize(
    "sql", ["create table t(a)", "create trigger a after insert on t begin /* translated 2 */ select 1; end", "create trigger"]
)
def test_another_statement_has_no_parts(sql: str) -> None:
    assert trigger_parts(statement_of(sql)) is None


def test_views_and_triggers_that_call_our_functions_work_on_all_nodes(tmp_path: Path) -> None:
    async def scene(cluster: ServedCluster) -> None:
        name, database = await cluster.leader()
        leader = await cluster.psycopg(name)
        for statement in (TABLES, ROWS, "create view v as select d + 1 as due, sum(n) / 3 as third from o where s like 'a%' group by d"):
            await leader.execute(statement.encode())
        await leader.execute(b"alter table o rename column n to amount; alter table o rename to orders")
        expected = await (await leader.execute("select due::text, third::text from v order by due")).fetchall()
        assert expected == [("2024-01-14", "0.66666666666666666667"), ("2024-02-02", "6.6666666666666667")]
        await leader.execute(b"insert into orders values (9, 'abc', 3, '2024-3-1', 1, true)")
        assert await (await leader.execute("select third::text from l where due = '2024-3-2'")).fetchall() == [("1.00",)]
        other = await cluster.follower()
        await cluster.cluster.serving(other, database.position)
        copy = await cluster.psycopg(other)
        assert (
            await (await copy.execute("select due::text, third::text from v where due < '2024-2-28' order by due")).fetchall() == expected
        )

    play_served(tmp_path, scene, nodes=2)
