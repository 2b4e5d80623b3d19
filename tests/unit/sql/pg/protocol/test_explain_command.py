"""EXPLAIN with real clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.unit.sql.pg.node_rig import ServedCluster, play_served


def play(folder: Path, body: Callable[[ServedCluster, psycopg.AsyncConnection[Any]], Awaitable[None]]) -> None:
    async def scene(served: ServedCluster) -> None:
        leader, _ = await served.leader()
        client = await served.psycopg(leader)
        await client.execute("CREATE TABLE t (id int PRIMARY KEY, a int)")
        await client.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
        await body(served, client)

    play_served(folder, scene)


async def column(client: psycopg.AsyncConnection[Any], sql: str, parameters: tuple[object, ...] = ()) -> list[Any]:
    cursor = await client.execute(sql.encode(), parameters)
    assert cursor.description is not None
    assert [one.name for one in cursor.description] == ["QUERY PLAN"]
    return [value for (value,) in await cursor.fetchall()]


def test_explain_shows_the_plan_and_runs_nothing(tmp_path: Path) -> None:
    async def body(_: ServedCluster, client: psycopg.AsyncConnection[Any]) -> None:
        assert await column(client, "EXPLAIN DELETE FROM t WHERE a > 1") == [
            "Delete on t",
            "  ->  Seq Scan on t",
            "        Filter: (a > 1)",
        ]
        assert (await column(client, "EXPLAIN (COSTS off, VERBOSE) SELECT * FROM t WHERE id = %s", (1,)))[0].startswith("Index Scan")
        assert len(await column(client, "EXPLAIN SELECT node FROM triplicate_nodes")) > 0
        (found,) = await (await client.execute("SELECT count(*) FROM t")).fetchall()
        assert found == (3,)
        cursor = await client.execute("EXPLAIN QUERY PLAN SELECT * FROM t")
        assert (await cursor.fetchall())[0][-1] == "SCAN t"

    play(tmp_path, body)


def test_explain_analyze_runs_the_statement(tmp_path: Path) -> None:
    async def body(_: ServedCluster, client: psycopg.AsyncConnection[Any]) -> None:
        lines = await column(client, "EXPLAIN ANALYZE SELECT a FROM t WHERE a > %s", (1,))
        assert "rows=2 loops=1" in lines[0]
        assert lines[-1].startswith("Execution Time: ")
        await column(client, "EXPLAIN ANALYZE DELETE FROM t WHERE a > %s", (2,))
        await column(client, "EXPLAIN (ANALYZE) DELETE FROM t WHERE a > 1")
        (((plan,),),) = [await column(client, "EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM t")]
        assert plan["Plan"]["Actual Rows"] == 1
        async with client.transaction(force_rollback=True):
            await client.execute("EXPLAIN ANALYZE DELETE FROM t")
        assert (await (await client.execute("SELECT id FROM t")).fetchall()) == [(1,)]

    play(tmp_path, body)


def test_explain_needs_the_rights_of_the_statement(tmp_path: Path) -> None:
    async def body(_: ServedCluster, client: psycopg.AsyncConnection[Any]) -> None:
        await client.execute("CREATE ROLE r")
        await client.execute("SET ROLE r")
        for statement in ("EXPLAIN SELECT * FROM t", "EXPLAIN ANALYZE DELETE FROM t", "EXPLAIN (FORMAT JSON) SELECT 1 FROM t"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await client.execute(statement.encode())

    play(tmp_path, body)


def test_asyncpg_gets_the_plan(tmp_path: Path) -> None:
    async def body(served: ServedCluster, _: psycopg.AsyncConnection[Any]) -> None:
        leader, _database = await served.leader()
        client = await served.asyncpg(leader)
        assert await client.fetch("EXPLAIN SELECT * FROM t WHERE a = $1", 1) == [("Seq Scan on t",), ("  Filter: (a = $1)",)]

    play(tmp_path, body)


REFUSED = (
    ("EXPLAIN", "42601"),
    ("EXPLAIN DROP TABLE t", "42601"),
    ("EXPLAIN (COLOUR) SELECT 1", "42601"),
    ("EXPLAIN (ANALYZE maybe) SELECT 1", "42601"),
    ("EXPLAIN (FORMAT toml) SELECT 1", "22023"),
    ("EXPLAIN (FORMAT xml) SELECT 1", "0A000"),
    ("EXPLAIN SELECT * FROM missing", "42P01"),
)


def test_an_explain_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    async def body(_: ServedCluster, client: psycopg.AsyncConnection[Any]) -> None:
        for statement, sqlstate in REFUSED:
            with pytest.raises(psycopg.Error) as refused:
                await client.execute(statement.encode())
            assert refused.value.sqlstate == sqlstate, statement

    play(tmp_path, body)
