"""Views of what the clients of a node do, with real clients."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.unit.sql.cluster import SETTINGS
from tests.unit.sql.pg.node_rig import ServedCluster, play_served
from tests.waiting import eventually
from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.statement_watch import StatementWatch


async def rows(client: psycopg.AsyncConnection[Any], sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    return await (await client.execute(sql.encode(), parameters)).fetchall()


def test_statements_are_counted_by_their_texts(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        leader, _ = await served.leader()
        client = await served.psycopg(leader)
        await client.execute("CREATE TABLE t (a int PRIMARY KEY)")
        await rows(client, "SELECT pg_stat_statements_reset()")
        await client.execute("INSERT INTO t VALUES (1)")
        await client.execute("INSERT INTO t VALUES (2)")
        await client.execute("INSERT INTO t VALUES (%s)", (3,))
        with pytest.raises(psycopg.errors.UniqueViolation):
            await client.execute("INSERT INTO t VALUES (3)")
        async with client.transaction(), client.cursor() as cursor:
            await cursor.executemany("INSERT INTO t(a) VALUES (%s)", [(number,) for number in range(10, 30)])
        await client.execute("SELECT a FROM t WHERE a < 10")
        found = await rows(client, "SELECT statement, calls, errors, rows FROM triplicate_statements ORDER BY 1")
        assert ("INSERT INTO t VALUES ($1)", 4, 1, 3) in found
        assert ("INSERT INTO t(a) VALUES ($1)", 20, 0, 20) in found
        assert ("SELECT a FROM t WHERE a < $1", 1, 0, 3) in found
        ((calls, total, longest),) = await rows(
            client, "SELECT calls, total_exec_time, max_exec_time FROM pg_stat_statements WHERE query = 'INSERT INTO t VALUES ($1)'"
        )
        assert calls == 4
        assert 0 < longest <= total

    play_served(tmp_path, scene)


def test_a_statement_that_begins_in_the_turn_of_the_one_before_is_active(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of an event loop stands still in a turn."""
    started = StatementWatch.__init__

    def stopped(watch: StatementWatch, state: ConnectionState) -> None:
        started(watch, state)
        watch._now = lambda: 5.0

    monkeypatch.setattr(StatementWatch, "__init__", stopped)

    async def scene(served: ServedCluster) -> None:
        leader, _ = await served.leader()
        client = await served.psycopg(leader)
        await client.execute("SELECT 1")
        assert await rows(client, "SELECT state FROM pg_stat_activity WHERE pid = %s", (client.info.backend_pid,)) == [("active",)]

    play_served(tmp_path, scene)


def test_the_waits_of_a_statement_are_shown(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        leader, _ = await served.leader()
        looking, holding, waiting = [await served.psycopg(leader) for _ in range(3)]
        await looking.execute("CREATE TABLE t (a int PRIMARY KEY)")
        await rows(looking, "SELECT triplicate_statements_reset()")
        for sql in ("BEGIN", "INSERT INTO t VALUES (1)"):
            await holding.execute(sql.encode())
        task = asyncio.get_running_loop().create_task(waiting.execute("UPDATE t SET a = 2"))
        in_transaction = await served.psycopg(leader)
        await in_transaction.execute("BEGIN")
        claim = asyncio.get_running_loop().create_task(in_transaction.execute("DELETE FROM t"))
        await eventually(lambda: sum(one.is_running for one in served.cluster.database(leader).activity.clients.values()) == 2)
        await asyncio.sleep(0.01)
        await holding.execute("COMMIT")
        await task
        await claim
        await looking.execute("SELECT a FROM t")
        sql = "SELECT statement, total_ms, wait_ms, writer_wait_ms, log_wait_ms, read_wait_ms FROM triplicate_statements"
        found = {statement: times for statement, *times in await rows(looking, sql)}
        for statement in ("UPDATE t SET a = $1", "DELETE FROM t"):
            total, wait, writer, log, read = found[statement]
            assert 10 <= writer <= wait <= total + 0.002
            assert read == 0
        assert found["UPDATE t SET a = $1"][3] > 0
        assert found["DELETE FROM t"][3] == 0
        total, wait, writer, log, read = found["COMMIT"]
        assert 0 < log <= total
        assert writer == 0
        total, wait, writer, log, read = found["SELECT a FROM t"]
        assert (writer, log) == (0, 0)
        assert wait == read <= total + 0.002
        assert found["INSERT INTO t VALUES ($1)"][3:] == [0, 0]

    play_served(tmp_path, scene)


def test_no_password_is_shown(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        leader, _ = await served.leader()
        client = await served.psycopg(leader)
        await client.execute("CREATE ROLE r LOGIN PASSWORD 'hush-hush'")
        await client.execute("ALTER ROLE r /* hush-hush */ PASSWORD 'hush-hush'")
        await client.execute("SET app.token = hush")
        for query in ("pg_stat_activity", "triplicate_sessions", "triplicate_statements", "pg_stat_statements"):
            found = await rows(await served.psycopg(leader), f"SELECT * FROM {query}")
            assert "PASSWORD" in repr(found)
            assert "hush" not in repr(found)

    play_served(tmp_path, scene)


def test_a_role_sees_its_own_statements(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        leader, _ = await served.leader()
        client, other = await served.psycopg(leader), await served.psycopg(leader)
        await client.execute("CREATE ROLE r")
        await client.execute("SELECT 'of the administrator' AS hidden")
        await other.execute("SET ROLE r")
        await other.execute("SELECT 1 AS shown")
        for table in ("triplicate_statements", "triplicate_sessions", "pg_stat_activity", "pg_stat_statements"):
            found = repr(await rows(other, f"SELECT * FROM {table}"))
            assert "hidden" not in found
            assert "FROM triplicate" in found or "AS shown" in found or "FROM pg_stat" in found
        assert "hidden" in repr(await rows(client, "SELECT * FROM triplicate_statements"))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await other.execute("SELECT triplicate_statements_reset()")

    play_served(tmp_path, scene)


def test_sessions_transactions_and_locks_are_shown(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        leader, _ = await served.leader()
        looking, holding, waiting = [await served.psycopg(leader) for _ in range(3)]
        await looking.execute("CREATE TABLE t (a int)")
        await holding.execute("SET application_name = 'keeper'")
        await holding.execute("BEGIN")
        await holding.execute("INSERT INTO t VALUES (1)")
        await waiting.execute("BEGIN")
        task = asyncio.get_running_loop().create_task(waiting.execute("INSERT INTO t VALUES (2)"))
        locks = "SELECT granted, pid, statement FROM triplicate_locks ORDER BY 1 DESC"
        pids = [client.info.backend_pid for client in (holding, waiting)]
        text = "INSERT INTO t VALUES ($1)"
        while len(found := await rows(looking, locks)) < 2:
            await asyncio.sleep(0.005)
        assert found == [(True, pids[0], text), (False, pids[1], text)]
        assert await rows(looking, "SELECT pid FROM pg_locks WHERE NOT granted") == [(pids[1],)]
        activity = "SELECT application_name, state, wait_event_type, xact_start IS NOT NULL FROM pg_stat_activity WHERE pid = %s"
        assert await rows(looking, activity, (pids[0],)) == [("keeper", "idle in transaction", "Client", True)]
        assert (await rows(looking, activity, (pids[1],)))[0][1:3] == ("active", "Lock")
        assert len(await rows(looking, "SELECT pid FROM triplicate_open_transactions")) == 2
        await holding.execute("COMMIT")
        await task
        await waiting.execute("ROLLBACK")
        assert await rows(looking, "SELECT DISTINCT state, writer FROM triplicate_sessions WHERE state <> 'active'") == [("idle", None)]
        await holding.close()
        await eventually(lambda: len(served.cluster.database(leader).activity.clients) == 2)

    play_served(tmp_path, scene)


def test_slow_statements_are_traced_without_their_values(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        leader, database = await served.leader()
        traced: list[tuple[str, dict[str, object]]] = []
        database._host = replace(database._host, trace=lambda kind, /, **facts: traced.append((kind, facts)))
        client = await served.psycopg(leader)
        await client.execute("SELECT 'quick'")
        assert traced == []
        database.activity.statements.slow_s = 1e-9
        await client.execute("SELECT 'hush'")
        kind, facts = traced[0]
        assert kind == "sql.slow_statement"
        assert (facts["statement"], facts["role"], facts["rows"], facts["database"]) == ("SELECT $1", "me", 1, "db")

    play_served(tmp_path, scene)
    assert SETTINGS.slow_statement_s == 0
