"""NOTIFY and the change feed, as client libraries use them, between real processes."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg

from tests.clients.stand import Db, run
from tests.waiting import LIMIT_S


def notes(connection: psycopg.Connection[Any], count: int) -> list[tuple[str, str]]:
    return [(note.channel, note.payload) for note in connection.notifies(timeout=LIMIT_S, stop_after=count)]


def test_psycopg_and_asyncpg_get_notifications(shared: Db) -> None:
    async def with_asyncpg() -> list[tuple[str, str]]:
        client = await shared.asyncpg()
        try:
            found: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
            await client.add_listener("news", lambda _connection, _pid, channel, payload: found.put_nowait((channel, payload)))
            async with client.transaction():
                await client.execute("SELECT pg_notify($1, $2)", "news", "from asyncpg")
            return [await asyncio.wait_for(found.get(), LIMIT_S)]
        finally:
            await client.close()

    with shared.connect() as listener, shared.connect() as sender:
        listener.execute("LISTEN news")
        sender.execute("NOTIFY news, 'from psycopg'")
        assert notes(listener, 1) == [("news", "from psycopg")]
        assert run(with_asyncpg()) == [("news", "from asyncpg")]
        assert notes(listener, 1) == [("news", "from asyncpg")]


def test_a_consumer_waits_for_commits_and_reads_them(shared: Db, table: str) -> None:
    with shared.connect() as consumer, shared.connect() as writer:
        writer.execute(f"CREATE TABLE {table} (a INTEGER PRIMARY KEY, b text)".encode())
        consumer.execute("LISTEN triplicate_changes")
        with writer.transaction():
            writer.execute(f"INSERT INTO {table} VALUES (1, 'x')".encode())
            writer.execute(f"UPDATE {table} SET b = 'y'".encode())
        assert [channel for channel, _ in notes(consumer, 1)] == ["triplicate_changes"]
        query = b"SELECT seq, change, new_row FROM triplicate_changes(%s, 0, 10, 5)"
        found = consumer.execute(query, (table,)).fetchall()
        assert found == [(0, "insert", {"a": 1, "b": "x"}), (1, "update", {"a": 1, "b": "y"}), (None, "position", None)]
