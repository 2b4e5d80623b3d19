"""Plain dumps of PostgreSQL, as its pg_dump 15.18 wrote them, loaded and imported as databases."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import datetime, time
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.unit.sql.backup.past_rig import command_on, ones
from tests.unit.sql.cluster import Cluster, play, run
from tests.unit.sql.hosting.restoring_rig import hosted
from triplicate.errors import ArgumentError, SqlError
from triplicate.runtime import real_host
from triplicate.sql import database_names
from triplicate.sql.backup.pg_dump import is_pg_dump, load_pg_dump
from triplicate.sql.hosting.database_backups import import_database

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "pg_dump"
COPY = GOLDEN / "shop_copy.sql"
ROWS: dict[str, list[dict[str, Any]]] = json.loads((GOLDEN / "shop_rows.json").read_text(encoding="utf-8"))
"""Written by PostgreSQL: ``json_agg`` of every table and view that was dumped."""
_FRACTIONS = ("numeric", "double", "real")
LEFT_OUT = {"OWNER TO": 13, "SET STATISTICS": 1, "COMMENT": 2, "GRANT": 2}


def as_json(value: Any, declared: str) -> Any:
    """A stored value as PostgreSQL's ``json_agg`` has it, dates and times as objects."""
    kind = declared.lower()
    if value is None:
        return None
    if kind.startswith(("timestamp", "time ")):
        return (datetime if kind.startswith("timestamp") else time).fromisoformat(value)
    if kind in ("json", "jsonb"):
        return json.loads(value) if isinstance(value, str) else value
    if kind == "bytea":
        return "\\x" + value.hex()
    if kind.startswith(_FRACTIONS):
        return float(value)
    return bool(value) if kind == "boolean" else value


def from_json(value: Any, declared: str) -> Any:
    kind = declared.lower()
    if value is not None and kind.startswith(("timestamp", "time ")):
        return (datetime if kind.startswith("timestamp") else time).fromisoformat(value)
    if value is not None and kind.startswith(_FRACTIONS):
        return float(value)
    return value.rstrip(" ") if value is not None and kind.startswith("character(") else value


def content(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    connection = apsw.Connection(str(path))
    try:
        names = [name for (name,) in connection.execute("select name from sqlite_schema where type in ('table', 'view')")]
        found = {name: connection.execute(f'select * from "{name}" order by 1, 2').fetchall() for name in names}
        found["(schema)"] = connection.execute("select name, sql from sqlite_schema order by name").fetchall()
        return found
    finally:
        connection.close(True)


def loaded(text: Path, path: Path) -> dict[str, int]:
    async def scene() -> dict[str, int]:
        host = real_host("test")
        assert is_pg_dump(host, str(text))
        return dict(load_pg_dump(host, str(text), str(path)))

    return asyncio.run(scene())


def test_a_loaded_dump_has_every_row_that_postgresql_had(tmp_path: Path) -> None:
    assert loaded(COPY, tmp_path / "loaded.db") == LEFT_OUT
    connection = apsw.Connection(str(tmp_path / "loaded.db"))
    compared = 0
    for table, rows in ROWS.items():
        query = "select name, type from pragma_table_xinfo(?)"
        columns = [(str(name), str(declared)) for name, declared in connection.execute(query, (table,))]
        ours = [[as_json(value, kind) for (_, kind), value in zip(columns, row, strict=True)]
                for row in connection.execute(f'select * from "{table}"')]  # fmt: skip
        theirs = [[from_json(row[name], kind) for name, kind in columns] for row in rows]
        assert sorted(map(repr, ours)) == sorted(map(repr, theirs)), table
        compared += len(ours)
    connection.close(True)
    assert compared == 27


@pytest.mark.parametrize("form", ["shop_inserts.sql", "shop_column_inserts.sql"])
def test_a_dump_with_inserts_is_loaded_as_one_with_copy_is(tmp_path: Path, form: str) -> None:
    loaded(COPY, tmp_path / "copy.db")
    left_out = loaded(GOLDEN / form, tmp_path / "inserts.db")
    assert content(tmp_path / "inserts.db") == content(tmp_path / "copy.db")
    assert left_out.keys() - LEFT_OUT.keys() <= {"DROP", "CREATE DATABASE", "\\connect"}


def test_a_dump_becomes_a_database_that_goes_on(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        client, logs, _ = await command_on(cluster)
        (tmp_path / "work").mkdir()
        work, remarks = str(tmp_path / "work"), list[str]()
        info = await import_database(client, logs, str(COPY), ones("shop"), work, remark=remarks.append)
        assert remarks == ["left out: 13 OWNER TO, 1 SET STATISTICS, 2 COMMENT, 2 GRANT"]
        assert not list((tmp_path / "work").iterdir())
        session = await (await hosted(cluster, "shop", info.identity)).session()
        await run(session, "insert into customers(name) values('next')")
        await run(session, "insert into orders(customer) values(42)")
        await run(session, "insert into products(title) values('Jug')")
        assert await run(session, "select id, status, is_member, notes from customers where name = 'next'") == [(42, "new", 0, "{}")]
        assert await run(session, "select id from orders where customer = 42") == [(1002,)]
        assert await run(session, "select sku, price, stock, label from products where title = 'Jug'") == [(4, 0, -1, "JUG")]
        for refused, sqlstate in (
            ("insert into customers(name, status) values('x', 'other')", "23514"),
            ("insert into customers(name) values('')", "23514"),
            ("insert into customers(name, email) values('x', 'ann@example.org')", "23505"),
            ("insert into orders(customer) values(777)", "23503"),
            ("insert into products(title) values(null)", "23502"),
            ("insert into words values(4, '', null, null)", "23514"),
            ("insert into words values(4, 'NULL', 'x', null)", "23505"),
        ):
            with pytest.raises(SqlError) as error:
                await run(session, refused)
            assert error.value.sqlstate == sqlstate, refused
        await run(session, "delete from customers where id = 1")
        assert await run(session, 'select count(*) from orders where id = 1000 union all select count(*) from "Order Items"') == [
            (0,),
            (1,),
        ]
        await session.close()
        path = tmp_path / "lost.sql"
        path.write_text(COPY.read_text().replace("1001\t3\t2024-03-02", "1001\t33\t2024-03-02"))
        with pytest.raises(ArgumentError, match=r"lost.sql has rows whose foreign keys lead nowhere: table orders, row 1001"):
            await import_database(client, logs, str(path), ones("other"), work, remark=remarks.append)
        key = "    ADD CONSTRAINT customers_pkey PRIMARY KEY (id);"
        path.write_text(COPY.read_text().replace(key, key.replace("PRIMARY KEY", "CHECK").replace("(id)", "(id > 0)")))
        with pytest.raises(ArgumentError, match=r'lost.sql has .*serial or identity column "id" that is not the primary key'):
            await import_database(client, logs, str(path), ones("other"), work)
        key = "    ADD CONSTRAINT staff_pkey PRIMARY KEY (id);"
        path.write_text(COPY.read_text().replace(key, key.replace("PRIMARY KEY (id)", "CHECK (id > 0)")))
        with pytest.raises(ArgumentError, match=r"lost.sql has a foreign key to columns that are no key: .*staff"):
            await import_database(client, logs, str(path), ones("other"), work)
        assert await database_names(client) == ["db", "shop"]
        assert (len(remarks), list((tmp_path / "work").iterdir())) == (1, [])

    play(tmp_path / "nodes", scene)


def test_what_a_database_does_not_have_is_named_by_its_line_before_anything_is_stored(tmp_path: Path) -> None:
    text = GOLDEN / "refused_dump.sql"
    lines = text.read_text().splitlines()
    with pytest.raises(ArgumentError) as error:
        loaded(text, tmp_path / "loaded.db")
    message = str(error.value)
    for statement in (
        "CREATE SCHEMA other",
        "CREATE EXTENSION IF NOT EXISTS citext",
        "CREATE TYPE public.mood",
        "CREATE DOMAIN public.positive",
        "CREATE FUNCTION public.note",
        "CREATE FUNCTION public.thrice",
    ):
        number = next(number for number, line in enumerate(lines, start=1) if line.startswith(statement))
        assert f"line {number}: {statement} is not supported (" in message
    assert message.endswith("; and 24 more")
    assert content(tmp_path / "loaded.db") == {"(schema)": []}


Change = Callable[[str], str | bytes]


def replaced(old: str, new: str) -> Change:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


def before_data(statement: str) -> Change:
    return replaced("\n--\n-- Data for Name: Order Items", f"\n{statement}\n--\n-- Data for Name: Order Items")


@pytest.mark.parametrize(
    ("damage", "marker", "reason"),
    [
        (
            replaced("\t1999-12-31\t", "\tnoon\t"),
            "\tnoon\t",
            'COPY customers, line {line}, column born: "noon": invalid input syntax for type date',
        ),
        (
            replaced("1000\t1\t1\t2\t3.50\n", "1000\t1\t1\t2\n"),
            "1000\t1\t1\t2\n",
            'COPY Order Items, line {line}: .*missing data for column "price"',
        ),
        (replaced("2\tPot\t12.00", "1\tPot\t12.00"), "1\tPot", "line {line}: table products: UNIQUE constraint failed: products.sku"),
        (
            replaced("2\tPot\t12.00", "2\tPot\t-1.00"),
            "2\tPot",
            "line {line}: table products: CHECK constraint failed: products_price_check",
        ),
        (
            replaced("2\tPot\t12.00", "2\tPot\t12345678901234567.89"),
            "2\tPot",
            "line {line}, column price: .*more digits than can be stored exactly",
        ),
        (replaced("1\tCup", "1\t\\N"), "1\t\\N\t3.50", "line {line}: table products: NOT NULL constraint failed: products.title"),
        (replaced("COPY public.staff (id,", "COPY public.staff (idea,"), "COPY public.staff", "line {line}: .*idea"),
        (replaced("COPY public.staff", "COPY public.stuff"), "COPY public.stuff", 'line {line}: table "stuff" is not created in this text'),
        (replaced("COPY public.staff", "COPY other.staff"), "COPY other", 'line {line}: schema "other" is not supported'),
        (
            lambda text: text[: text.index("2\tPot")],
            "COPY public.products",
            "line .*: the text ends within the data of COPY of line {line}",
        ),
        (
            lambda text: text[: text.index("ADD CONSTRAINT orders_pkey")],
            "ALTER TABLE ONLY public.orders",
            "line {line}: the text ends, at line .*, within this",
        ),
        (
            lambda text: text[: text.index("ALTER TABLE ONLY public.orders")],
            "",
            "is not complete: the last comment that pg_dump writes is missing",
        ),
        (
            lambda text: text.encode().replace("ü".encode(), b"\xfc", 1),
            "4\t",
            'line {line}: invalid byte sequence for encoding "UTF8": 0xfc',
        ),
        (lambda text: text.encode().replace(b"who buys", b"who \xfc buys"), "COMMENT ON TABLE", "line {line}: the text is no UTF-8"),
        (
            replaced("client_encoding = 'UTF8'", "client_encoding = 'LATIN1'"),
            "SET client_encoding",
            "line {line}: the encoding LATIN1 is not supported",
        ),
        (
            replaced("'public.customers_id_seq', 41", "'public.other_seq', 41"),
            "'public.other_seq'",
            'line {line}: relation "other_seq" does not exist',
        ),
        (
            replaced("INCREMENT BY 1\n", "INCREMENT BY 2\n"),
            "CREATE SEQUENCE",
            "line {line}: INCREMENT of sequence customers_id_seq is not supported",
        ),
        (
            replaced("    born date", "    born date[]"),
            "    born",
            r"line {line}: column born of table customers: an array as the type of a column \(date\[\]\)",
        ),
        (
            replaced("UNIQUE (email)", "UNIQUE NULLS NOT DISTINCT (email)"),
            "ALTER TABLE ONLY public.customers\n    ADD CONSTRAINT customers_email_key",
            r"line {line}: table customers: UNIQUE NULLS \[NOT\]",
        ),
        (
            replaced("(lower((name)::text))", "(md5((name)::text))"),
            "CREATE INDEX customers_lower",
            "line {line}: CREATE INDEX: no such function: md5",
        ),
        (
            replaced("sum(i.qty)", "stddev(i.qty)"),
            "CREATE OR REPLACE VIEW",
            "view of_totals: it reads view totals.*line {line}: view totals: function stddev\\(\\) is not available",
        ),
        (
            before_data("CREATE TRIGGER t AFTER INSERT ON public.staff FOR EACH ROW EXECUTE FUNCTION public.f();"),
            "CREATE TRIGGER",
            "line {line}: CREATE TRIGGER t",
        ),
        (
            before_data("CREATE UNLOGGED TABLE public.u (a integer);"),
            "CREATE UNLOGGED",
            "line {line}: CREATE UNLOGGED TABLE public.u is not supported",
        ),
        (before_data("\\! ls"), "\\! ls", r"line {line}: \\! of psql is not supported"),
        (before_data("\\connect other"), "\\connect", r"line {line}: \\connect of psql is not supported \(several databases in one text"),
        (
            before_data("ALTER TABLE public.staff ENABLE ROW LEVEL SECURITY;"),
            "ALTER TABLE public.staff ENABLE",
            "line {line}: ALTER TABLE … ENABLE ROW is not",
        ),
        (before_data("SELECT pg_catalog.lo_create('1');"), "SELECT pg_catalog.lo", "line {line}: a large object is not supported"),
    ],
)
def test_a_damaged_or_foreign_dump_is_refused_with_its_line(tmp_path: Path, damage: Change, marker: str, reason: str) -> None:
    path, target = tmp_path / "dump.sql", tmp_path / "loaded.db"
    changed = damage(COPY.read_text(encoding="utf-8"))
    data = changed if isinstance(changed, bytes) else changed.encode()
    path.write_bytes(data)
    line = data.count(b"\n", 0, data.rindex(marker.encode()) if marker else 0) + 1
    with pytest.raises(ArgumentError, match=reason.replace("{line}", str(line))):
        loaded(path, target)
    assert not target.exists() or content(target) == {"(schema)": []}


@pytest.mark.parametrize(
    ("begin", "reason"),
    [
        (
            b"PGDMP\x01\x0e\x00",
            "pg_dump's custom format: write it as text with `pg_dump --format=plain`, or turn .* `pg_restore -f dump.sql`",
        ),
        (b"toc.dat\0\0\0", "pg_dump's tar format: write it as text"),
        (b"\x1f\x8b\x08", "is packed by gzip: unpack it first"),
        (b"\xff\xfe-\0-\0", "is a text in UTF-16"),
        (b"--\n-- PostgreSQL database cluster dump\n--\n", "is a dump of all databases by pg_dumpall"),
    ],
)
def test_a_dump_in_another_form_is_refused_with_the_command_that_helps(tmp_path: Path, begin: bytes, reason: str) -> None:
    path = tmp_path / "dump"
    path.write_bytes(begin)

    async def scene() -> None:
        with pytest.raises(ArgumentError, match=reason):
            is_pg_dump(real_host("test"), str(path))

    asyncio.run(scene())


@pytest.mark.parametrize(
    "text", ["CREATE TABLE t (a int);", "-- triplicate: database shop\n", "", "-- a comment\n-- PostgreSQL database\n"]
)
def test_other_texts_are_no_dumps(tmp_path: Path, text: str) -> None:
    path = tmp_path / "dump.sql"
    path.write_text(text)

    async def scene() -> bool:
        return is_pg_dump(real_host("test"), str(path))

    assert not asyncio.run(scene())
