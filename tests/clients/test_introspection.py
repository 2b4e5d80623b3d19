"""Catalogue queries that Python's drivers send by themselves, and the answers for missing parts of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg.types import TypeInfo
from psycopg.types.enum import EnumInfo
from psycopg.types.range import RangeInfo

from tests.clients.stand import Db, run, sqlstate_of


@pytest.fixture
def connection(shared: Db) -> Iterator[psycopg.Connection[Any]]:
    with shared.connect() as one:
        yield one


KNOWN = [("int4", 23, 1007), ("integer", 23, 1007), ("timestamptz", 1184, 1185), ("text", 25, 1009), ("jsonb", 3802, 3807)]


@pytest.mark.parametrize(("name", "oid", "array"), KNOWN)
def test_psycopg_finds_a_type_by_its_name(connection: psycopg.Connection[Any], name: str, oid: int, array: int) -> None:
    found = TypeInfo.fetch(connection, name)
    assert found is not None
    assert (found.oid, found.array_oid) == (oid, array)


@pytest.mark.parametrize("kind", [TypeInfo, EnumInfo, RangeInfo])
def test_psycopg_does_not_find_unsupported_types(connection: psycopg.Connection[Any], kind: type[TypeInfo]) -> None:
    assert kind.fetch(connection, "hstore") is None


def test_asyncpg_learns_the_types_of_arrays_and_codecs(shared: Db) -> None:
    async def body() -> None:
        client = await shared.asyncpg()
        assert await client.fetchval("SELECT 2 = any($1::int[])", [1, 2]) is True
        assert await client.fetchval("SELECT 'c' = any($1::text[])", ["a", "b"]) is False
        await client.set_type_codec("jsonb", encoder=str, decoder=lambda text: "decoded " + text, schema="pg_catalog")
        assert await client.fetchval("SELECT $1::jsonb", '{"a": 1}') == 'decoded {"a": 1}'
        with pytest.raises(ValueError, match="unknown type"):
            await client.set_type_codec("hstore", encoder=str, decoder=str, schema="public")
        await client.close()

    run(body())


def test_asyncpg_keeps_parameters_at_their_numbers(shared: Db) -> None:
    async def body() -> None:
        client = await shared.asyncpg()
        row = await client.fetchrow("SELECT $2::text AS b, $1::text AS a", "1", "2")
        assert dict(row) == {"b": "2", "a": "1"}
        assert await client.fetchval("SELECT $1::text || $1::text", "x") == "xx"
        await client.close()

    run(body())


def test_settings_are_the_sessions(connection: psycopg.Connection[Any]) -> None:
    row = connection.execute("SELECT set_config('application_name', %s, false), current_setting('application_name') AS now", ("given",))
    assert row.fetchone() == ("given", "given")
    assert connection.execute("SHOW application_name").fetchone() == ("given",)
    assert connection.execute("SELECT pg_catalog.current_setting('no.such', true)").fetchone() == (None,)
    assert sqlstate_of(lambda: connection.execute("SELECT current_setting('no.such')")) == "42704"
    refused = sqlstate_of(lambda: connection.execute("SELECT current_setting('application_name') || 'x'"))
    assert refused == "0A000", "the engine would not know the session's value"


def test_the_catalogue_is_read_only_and_names_its_missing_parts(connection: psycopg.Connection[Any]) -> None:
    assert sqlstate_of(lambda: connection.execute("SELECT * FROM pg_catalog.pg_authid")) == "42P01"
    assert sqlstate_of(lambda: connection.execute("SELECT relhasoids FROM pg_class")) == "42703"
    assert sqlstate_of(lambda: connection.execute("SELECT oid FROM pg_inherits")) == "42703"
    assert sqlstate_of(lambda: connection.execute("DELETE FROM pg_class")) in ("42809", "42501")
    assert sqlstate_of(lambda: connection.execute("CREATE TABLE pg_class (a int)")) == "42939"
    assert sqlstate_of(lambda: connection.execute("SELECT * FROM public.pg_class")) == "42P01"


def test_the_catalogue_shows_a_change_in_its_own_transaction_and_forgets_it_with_it(
    connection: psycopg.Connection[Any], table: str
) -> None:
    count = f"SELECT count(*) FROM pg_catalog.pg_class WHERE relname = '{table}'".encode()
    connection.execute("BEGIN")
    connection.execute(f"CREATE TABLE {table} (a INTEGER PRIMARY KEY)".encode())
    assert connection.execute(count).fetchone() == (1,)
    connection.execute("ROLLBACK")
    assert connection.execute(count).fetchone() == (0,)
    connection.execute(f"CREATE TABLE {table} (a INTEGER PRIMARY KEY)".encode())
    assert connection.execute(count).fetchone() == (1,)


def test_object_ids_are_the_same_on_every_node(shared: Db, connection: psycopg.Connection[Any], table: str) -> None:
    connection.execute(f"CREATE TABLE {table} (a INTEGER PRIMARY KEY, b TEXT UNIQUE)".encode())
    query = f"SELECT oid FROM pg_class WHERE relname = '{table}'"
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    assert row[0] >= 16384
    for node in shared.followers():
        shared.wait_for_value(node, query, row[0])


def test_asyncpg_reads_the_catalogue_in_binary(shared: Db, table: str) -> None:
    async def body() -> None:
        client: asyncpg.Connection = await shared.asyncpg()
        await client.execute(f"CREATE TABLE {table} (a INTEGER PRIMARY KEY, b VARCHAR(20))")
        rows = await client.fetch(
            "SELECT a.attname, a.attnum, t.oid, t.typtype, a.attnotnull FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
            " JOIN pg_class c ON c.oid = a.attrelid WHERE c.relname = $1 ORDER BY a.attnum",
            table,
        )
        assert [tuple(row) for row in rows] == [("a", 1, 23, b"b", True), ("b", 2, 1043, b"b", False)]
        await client.close()

    run(body())


def test_a_cursor_on_the_server_is_refused_by_its_own_name(connection: psycopg.Connection[Any]) -> None:
    # psycopg closes such a cursor with a query of pg_cursors, which must not replace the first error by another.
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="DECLARE"), connection.transaction(), connection.cursor("named") as cursor:
        cursor.execute("SELECT 1")
