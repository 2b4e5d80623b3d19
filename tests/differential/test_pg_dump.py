"""A database that PostgreSQL's own pg_dump wrote is loaded with the same rows, in each form of a plain dump."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw
import psycopg
import pytest

from tests.differential.servers import USER, Database, find_postgresql
from triplicate.runtime import real_host
from triplicate.sql.backup.pg_dump import is_pg_dump, load_pg_dump

SCRIPT = Path(__file__).resolve().parents[1] / "golden" / "pg_dump" / "shop.sql"
QUERIES = {
    "customers": "id, name, email, status, is_member::int, extract(epoch from joined)::text, seen::text, born, code::text, photo",
    '"Order Items"': '"order", "Line No", product, qty, price::float8',
    "a_returns": '"order", line, reason',
    "orders": "id, customer, placed",
    "products": "sku, title, price::float8, weight, stock, label",
    "staff": "id, boss, name",
    "words": '"index", "transaction", "select", "With ""quotes"""::int',
    "totals": "id, customer, lines, total",
    "active": "id, name, shown",
}
OURS = {
    "is_member::int": "is_member",
    "extract(epoch from joined)::text": "unixepoch(joined) || substr(joined || '.000000', instr(joined || '.', '.'), 7)",
    "seen::text": "rtrim(rtrim(seen || iif(instr(seen, '.'), '', '.0'), '0'), '.')",
    "code::text": "code",
    "price::float8": "CAST(price AS REAL)",
    '"With ""quotes"""::int': '"With ""quotes"""',
}


@pytest.fixture(scope="module")
def shop(reference: Database) -> Iterator[str]:
    """The name of a database of PostgreSQL's with the tables of the script."""
    name = "dumped_shop"
    with psycopg.connect(reference.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    with psycopg.connect(reference.dsn, autocommit=True, dbname=name) as connection:
        connection.execute(SCRIPT.read_bytes())
    yield name
    with psycopg.connect(reference.dsn, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name}".encode())


def dump(reference: Database, name: str, options: Sequence[str]) -> bytes:
    programs = find_postgresql()
    assert programs is not None, "the fixture has started it"
    place = psycopg.conninfo.conninfo_to_dict(reference.dsn)
    command = [str(programs / "pg_dump"), "-h", str(place["host"]), "-p", str(place["port"]), "-U", USER, *options, name]
    return subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PGTZ": "Asia/Kolkata"}).stdout


def load(text: Path, path: Path) -> dict[str, int]:
    async def scene() -> dict[str, int]:
        host = real_host("test")
        assert is_pg_dump(host, str(text))
        return dict(load_pg_dump(host, str(text), str(path)))

    return asyncio.run(scene())


@pytest.mark.parametrize("options", [(), ("--inserts", "--rows-per-insert=2"), ("--column-inserts", "--clean", "--create", "--if-exists")])
def test_the_rows_of_a_loaded_dump_are_those_of_postgresql(
    reference: Database, shop: str, tmp_path: Path, options: tuple[str, ...]
) -> None:
    text, path = tmp_path / "dump.sql", tmp_path / "loaded.db"
    text.write_bytes(dump(reference, shop, options))
    left_out = load(text, path)
    assert {"OWNER TO", "COMMENT", "GRANT"} <= left_out.keys()
    here = apsw.Connection(str(path))
    with psycopg.connect(reference.dsn, dbname=shop) as there:
        there.execute("SET TIME ZONE 'UTC'")
        for table, columns in QUERIES.items():
            expected = there.execute(f"SELECT {columns} FROM {table}".encode()).fetchall()
            ours = columns
            for column, written in OURS.items():
                ours = ours.replace(column, written)
            found = here.execute(f"SELECT {ours} FROM {table}").fetchall()
            assert sorted(map(_shown, found)) == sorted(map(_shown, expected)), table
    here.close(True)


def _shown(row: Sequence[object]) -> str:
    return " | ".join("NULL" if value is None else str(value) for value in row)
