"""A database as SQL text, loaded through the server of PostgreSQL's protocol."""

from __future__ import annotations

import asyncio
import shutil
from asyncio.subprocess import PIPE
from pathlib import Path

import apsw
import psycopg
import pytest

from tests.unit.sql.backup.past_rig import command_on, content_of
from tests.unit.sql.cluster import run as run_statement
from tests.unit.sql.pg.node_rig import ServedCluster, play_served
from tests.unit.sql.pg.server_rig import Served, run
from triplicate.errors import ArgumentError
from triplicate.runtime import real_host
from triplicate.sql.backup.sql_dump import write_dump
from triplicate.sql.hosting.database_backups import export_database

SCRIPT = """
create table customers(id serial primary key, name varchar(20) not null unique, born date, balance numeric(10,2) default 0);
create table orders(id bigint primary key, customer int references customers(id) on delete cascade, at timestamptz,
    paid boolean default false, total double precision check (total >= 0), note text default 'it''s', doc jsonb, key uuid);
create table "Odd name"("a b" text primary key, "select" int) ;
create table anything(a, b);
create index orders_at on orders(at);
create table parts(id integer not null, code text not null);
create table uses(part int references parts(id), code text references parts(code));
create unique index parts_pkey /* primary key */ on parts(id);
create unique index parts_code on parts(code);
create view unpaid as select o.id, c.name from orders o join customers c on c.id = o.customer where not o.paid;
create view of_day as select customer, max(at)::date + 1 as due, sum(c.balance) / 3 as share, count(*), note like 'I%' as shout
    from orders o join customers c on c.id = o.customer group by customer, note;
create table counted(id integer primary key autoincrement, v text);
create table made(a int, b int generated always as (a * 2) stored, c text generated always as (a || '!') virtual);
create table keyed(k text primary key, v real) without rowid;
create trigger raised after insert on orders begin
    update customers set balance = 1 where id = new.customer; insert into anything values ('a;b', new.id);
end;
insert into customers(name, born, balance) values ('Ann', '2000-01-31', 12.50), ('O''Brien "x" \\ y', null, -0.01);
insert into orders values (-9223372036854775807 - 1, 1, '2026-01-31 12:00:00+00', true, 1.5e300, 'line
two', '{"a": [1, 2]}', '00112233-4455-6677-8899-aabbccddeeff'), (2, 2, null, false, 0.1, '', null, null);
insert into "Odd name" values ('ü€😀', 1);
insert into anything values (1, 'one'), (1.5, x'00ff'), ('1', null), (3.0, '');
insert into counted(v) values (':name'), (E'cr\\r\\t $1 $$ /* -- \\\\');
insert into made(a) values (1), (null);
insert into keyed values ('k', 3), ('l', 1e-320);
insert into parts values (7, 'bolt');
insert into uses values (7, 'bolt');
"""

MEANINGS = """
create table made(id uuid primary key default gen_random_uuid(), u text default gen_random_uuid()::text,
    code text default 'x' || gen_random_uuid(),
    r double precision default random(), half boolean default random() < 0.5, a timestamptz default now(),
    b timestamp default localtimestamp, c date default current_date, d time default localtime, e text default now(),
    f text default localtimestamp, g text default current_date,
    h text default localtime, i timestamptz default current_date, j timestamp default current_date, k text default current_timestamp,
    l text default '((random() & 9007199254740991) / 9007199254740992.0)');
create table checked(a timestamptz check (a <= now()), b timestamp check (b <= localtimestamp), c date check (c <= current_date),
    d time check (d <= localtime), s text check (s ilike 'A%' and s not ilike '%_z' and s like '_b%'),
    n int check (sign(n) = 1 and ceil(n) > 0),
    x double precision check (n::double precision < 9), f boolean generated always as (s ilike 'ab%') stored);
create index checked_s on checked((s ilike 'b%')) where s ilike 'a%';
create view seen as select s ilike 'a%' as y, s like 'a%' as z, random() < 2 as r from checked where a < now();
create trigger followed after insert on checked begin insert into made(u) select gen_random_uuid() where new.s ilike 'a%'; end;
insert into made(c) values ('2000-01-31');
insert into checked values ('2000-01-31', '2000-01-31', '2000-01-31', '00:00:00', 'Abc', 7, 1);
"""


async def loaded(s: Served, name: str, text: str) -> None:
    host, port = s.server.address
    connection = await psycopg.AsyncConnection.connect(f"host={host} port={port} dbname={name} user=me", autocommit=True)
    await connection.execute(text.encode())
    await connection.close()


def rows_of(connection: apsw.Connection) -> dict[str, list[tuple[object, ...]]]:
    names = [str(name) for (name,) in connection.execute("select name from sqlite_schema where type in ('table', 'view') order by name")]
    tables = {name: connection.execute(f'select * from "{name}" order by 1').fetchall() for name in names if not name.startswith("sqlite_")}
    tables["(schema)"] = connection.execute("select type, name, sql from sqlite_schema order by type, name").fetchall()
    return tables


def file_of(connection: apsw.Connection, path: Path) -> None:
    with apsw.Connection(str(path)) as target, target.backup("main", connection, "main") as backup:
        backup.step()


def test_a_dump_that_is_loaded_makes_the_same_database(tmp_path: Path) -> None:
    async def body(s: Served) -> None:
        await loaded(s, "shop", SCRIPT)
        source, target = s.databases.shop._connection, s.databases.other._connection
        file_of(source, tmp_path / "source.db")
        write_dump(real_host("test"), str(tmp_path / "source.db"), str(tmp_path / "dump.sql"), "database shop")
        text = (tmp_path / "dump.sql").read_bytes().decode()
        assert text.startswith("-- triplicate: database shop\n")
        assert text.endswith("\n-- triplicate: end of database shop\n")
        assert text.count("\\;") == 2
        assert text.index("CREATE UNIQUE INDEX parts_pkey /* primary key */") < text.index('INSERT INTO "parts"'), "foreign keys need it"
        await loaded(s, "other", text.replace("\\;", ";"))
        assert rows_of(target) == rows_of(source)

    run(body)


def test_a_dump_keeps_the_meaning_of_definitions(tmp_path: Path) -> None:
    async def body(s: Served) -> None:
        await loaded(s, "shop", MEANINGS)
        texts = []
        for name, other in (("shop", "other"), ("other", "")):
            path = tmp_path / f"{name}.db"
            file_of(getattr(s.databases, name)._connection, path)
            write_dump(real_host("test"), str(path), str(tmp_path / "dump.sql"), "database")
            texts.append((tmp_path / "dump.sql").read_text())
            if other:
                await loaded(s, other, texts[-1].replace("\\;", ";"))
        assert rows_of(s.databases.other._connection) == rows_of(s.databases.shop._connection)
        assert texts[0] == texts[1], "an imported database is exported as the first one was"
        tables, _, _ = texts[0].partition("CREATE VIEW")
        assert tables.count("gen_random_uuid()") == 3
        assert "strftime" not in tables

    run(body)


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_loads_a_dump_into_a_replicated_database(tmp_path: Path) -> None:
    async def scene(cluster: ServedCluster) -> None:
        nodes = cluster.cluster
        source = await cluster.psycopg("n1")
        await source.execute(SCRIPT.encode())
        await source.execute("insert into anything values (%b, 'whole')", (3.0,))
        await source.execute("pragma user_version = 7")
        session = await (await nodes.leader()).session()
        await run_statement(session, "create table odd([it's] int, `b;c` text, d /* a /* ; */ int, e int -- it's\n)")
        await run_statement(session, "insert into odd values (1, 'x', 2, 3)")
        await session.close()
        client, logs, _ = await command_on(nodes)
        path = tmp_path / "dump.sql"
        await export_database(client, logs, "db", None, str(path), as_sql=True)
        await nodes.create("other")
        other = await nodes.leader("other")
        host, port = (await cluster.server("n1")).address
        dsn = f"host={host} port={port} dbname=other user=me"
        psql = await asyncio.create_subprocess_exec("psql", dsn, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(path), stderr=PIPE)
        _, errors = await psql.communicate()
        assert (psql.returncode, errors) == (0, b"")
        before, after = content_of(Path(nodes.database("n1").path)), content_of(Path(other.path))
        schemas = [{str(name): sql for name, sql in content.pop("(schema)")} for content in (before, after)]
        assert repr(after) == repr(before)
        odd = [schema.pop("odd") for schema in schemas]
        assert odd[1] == 'CREATE TABLE odd("it\'s" int, "b;c" text, d int, e int )'
        assert schemas[1] == schemas[0]
        with apsw.Connection(other.path) as connection:
            assert connection.pragma("user_version") == 7

    play_served(tmp_path / "nodes", scene)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("create virtual table f using fts5(a)", "virtual tables .*f"),
        ("create table a(x primary key references b(y)); create table b(y primary key references a(x))", "a, b refer to one another"),
        ("create table t(v); insert into t values('a' || char(0))", "column 'v' of table 't'"),
        ("create table t(v); insert into t values(9e999)", "infinite"),
        ("create table t(v int default (random()))", "'CREATE TABLE t.*SQLite's random"),
    ],
)
def test_what_sql_text_cannot_have_is_named(tmp_path: Path, script: str, reason: str) -> None:
    async def body(_: Served) -> None:
        with apsw.Connection(str(tmp_path / "source.db")) as connection:
            connection.execute(script)
        with pytest.raises(ArgumentError, match=reason):
            write_dump(real_host("test"), str(tmp_path / "source.db"), str(tmp_path / "dump.sql"), "x")

    run(body)
