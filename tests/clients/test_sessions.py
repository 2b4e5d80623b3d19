"""Settings of a session and its transactions, and how long each lasts."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.clients.stand import READERS, Db, run, sqlstate_of

ENDLESS_ROWS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.fixture
def connection(shared: Db, table: str) -> Iterator[psycopg.Connection[Any]]:
    with shared.connect() as one:
        one.execute(f"CREATE TABLE {table} (a INTEGER PRIMARY KEY)".encode())
        yield one


def show(connection: psycopg.Connection[Any], name: str) -> str:
    row = connection.execute(f"SHOW {name}".encode()).fetchone()
    assert row is not None
    return str(row[0])


READ_ONLY = ["BEGIN READ ONLY", "START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY", "BEGIN; SET TRANSACTION READ ONLY"]


@pytest.mark.parametrize("begin", READ_ONLY)
def test_a_read_only_transaction_refuses_changes(connection: psycopg.Connection[Any], table: str, begin: str) -> None:
    for statement in begin.split("; "):
        connection.execute(statement.encode())
    assert show(connection, "transaction_read_only") == "on"
    assert sqlstate_of(lambda: connection.execute(f"INSERT INTO {table} VALUES (1)".encode())) == "25006"
    connection.execute("ROLLBACK")
    assert show(connection, "transaction_read_only") == "off"
    connection.execute(f"INSERT INTO {table} VALUES (1)".encode())


def test_read_only_as_the_clients_libraries_ask_for_it(shared: Db, connection: psycopg.Connection[Any], table: str) -> None:
    insert = f"INSERT INTO {table} VALUES (1)"
    with shared.connect(autocommit=False) as other:
        other.read_only = True
        assert sqlstate_of(lambda: other.execute(insert.encode())) == "25006"
        other.rollback()
        other.read_only = False
        other.execute(insert.encode())
        other.rollback()

    async def with_asyncpg() -> None:
        client = await shared.asyncpg()
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            async with client.transaction(readonly=True):
                await client.execute(insert)
        await client.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            await client.execute(insert)
        await client.execute("BEGIN READ WRITE")
        await client.execute(insert)
        await client.execute("ROLLBACK")
        await client.execute("SET default_transaction_read_only = off")
        await client.execute(insert)
        await client.close()

    run(with_asyncpg())
    assert connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (1,)


def test_set_local_ends_with_its_transaction(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET statement_timeout = '7s'")
    for end in ("COMMIT", "ROLLBACK"):
        connection.execute("BEGIN")
        connection.execute("SET LOCAL statement_timeout = '3s'")
        assert show(connection, "statement_timeout") == "3s"
        connection.execute(end.encode())
        assert show(connection, "statement_timeout") == "7s"
    connection.execute("SET LOCAL statement_timeout = '3s'")
    assert show(connection, "statement_timeout") == "7s", "outside of a transaction it has no effect"


def test_settings_come_with_the_connection_string(shared: Db) -> None:
    with psycopg.connect(shared.dsn() + " options='-c statement_timeout=5s --application-name=opted'", autocommit=True) as connection:
        assert show(connection, "statement_timeout") == "5s"
        assert show(connection, "application_name") == "opted"
        connection.execute("SET statement_timeout = 0")
        connection.execute("RESET ALL")
        assert show(connection, "statement_timeout") == "5s"
    with pytest.raises(psycopg.OperationalError, match="cannot be read"):
        psycopg.connect(shared.dsn() + " options='-x'")


def test_session_commands_are_ignored_in_a_failed_transaction(connection: psycopg.Connection[Any]) -> None:
    connection.execute("BEGIN")
    assert sqlstate_of(lambda: connection.execute("SELECT absent")) == "42703"
    assert sqlstate_of(lambda: show(connection, "statement_timeout")) == "25P02"
    assert sqlstate_of(lambda: connection.execute("SET application_name = 'x'")) == "25P02"
    connection.execute("ROLLBACK")


def test_a_request_id_is_forgotten_when_the_session_is_reset(connection: psycopg.Connection[Any], table: str) -> None:
    for word in ("RESET ALL", "DISCARD ALL", "RESET triplicate.request_id", "SET triplicate.request_id = ''"):
        connection.execute("SET triplicate.request_id = 'of another user'")
        connection.execute(word.encode())
        connection.execute(f"INSERT INTO {table} DEFAULT VALUES".encode())
    assert connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (4,)


def test_statement_timeout_also_ends_a_result_that_never_ends(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET statement_timeout = '300ms'")
    started = time.monotonic()
    with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
        connection.execute("SELECT sum(i) FROM (" + ENDLESS_ROWS + ")")
    assert time.monotonic() - started < 10
    connection.execute("SET statement_timeout = 0")
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_client_that_leaves_while_rows_stream_frees_its_reader(shared: Db) -> None:
    async def leave() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", shared.stand.ports[shared.leader()])
        body = b"\0\3\0\0user\0x\0database\0shared\0\0"
        writer.write((len(body) + 4).to_bytes(4, "big") + body)
        query = ENDLESS_ROWS.encode() + b"\0"
        writer.write(b"Q" + (len(query) + 4).to_bytes(4, "big") + query)
        received = 0
        while received < 200_000:
            received += len(await reader.read(65536))
        writer.transport.abort()

    async def body() -> None:
        for _ in range(READERS + 1):
            await leave()
        client = await shared.asyncpg()
        assert await client.fetchval("SELECT count(*) FROM (SELECT 1)") == 1
        await client.close()

    run(body())


def test_a_cancel_also_ends_a_result_that_the_client_is_slow_to_read(shared: Db) -> None:
    with shared.connect() as connection:
        rows = connection.cursor().stream(ENDLESS_ROWS.encode())
        assert [next(rows) for _ in range(3)] == [(1,), (2,), (3,)]
        connection.cancel_safe(timeout=5)
        with pytest.raises(psycopg.errors.QueryCanceled):
            deque(rows, maxlen=0)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_an_open_portal_ends_with_its_transaction(shared: Db) -> None:
    async def body() -> None:
        client = await shared.asyncpg()
        for turn in range(READERS + 1):
            await client.execute("BEGIN")
            cursor = await client.cursor(ENDLESS_ROWS)
            assert [row[0] for row in await cursor.fetch(3)] == [1, 2, 3]
            await client.execute("COMMIT" if turn % 2 else "ROLLBACK")
        assert await client.fetchval("SELECT count(*) FROM (SELECT 1)") == 1
        await client.close()

    run(body())
