"""Queries with AS OF, by the clients' libraries and message by message."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.unit.sql.backup.past_rig import History, past_databases, written
from tests.unit.sql.cluster import run
from tests.unit.sql.pg.node_rig import ServedCluster, play_served
from tests.unit.sql.pg.raw_client import FLUSH, SYNC, RawClient, bind, describe, execute, parse, query
from tests.waiting import eventually
from triplicate.sql import SqlDatabase
from triplicate.sql.backup.past_copy import PastCopies

Scene = Callable[[ServedCluster, SqlDatabase, History], Awaitable[None]]


def play_written(folder: Path, scene: Scene) -> None:
    async def with_history(cluster: ServedCluster) -> None:
        _, database = await cluster.leader()
        await scene(cluster, database, await written(database))

    play_served(folder, with_history)


async def raw(cluster: ServedCluster) -> RawClient:
    host, port = (await cluster.server("n1")).address
    client = await RawClient.connect(host, port, "db")
    cluster.held.callback(client.close)
    return client


async def state_of(work: Awaitable[object]) -> str:
    with pytest.raises(psycopg.Error) as refused:
        await work
    return refused.value.sqlstate or ""


def readers(cluster: ServedCluster) -> int:
    """Sessions that read copies of the past."""
    return sum(past_databases(cluster.cluster).positions.values())


def test_a_query_reads_the_database_as_it_was_and_the_session_stays_in_the_present(tmp_path: Path) -> None:
    async def scene(cluster: ServedCluster, database: SqlDatabase, history: History) -> None:
        connection = await cluster.psycopg("n1")
        for moment in history.moments[1:6:2]:
            for clause in (f"position {moment.position}", f"transaction {moment.transaction_id}"):
                for table in ("t", "u"):
                    sql = f"select * from {table} order by 1 as of {clause}"
                    if table in moment.content:
                        cursor = await connection.execute(sql)
                        assert await cursor.fetchall() == moment.content[table]
                    else:
                        assert await state_of(connection.execute(sql)) == "42P01"
        cursor = await connection.execute("with c as (select id from t) select count(*) from c, t as of position 2")
        assert await cursor.fetchall() == [(4,)]
        cursor = await connection.execute("select count(*) from t")
        assert await cursor.fetchall() == [(2,)]
        await connection.execute("insert into t(v) values('now')")
        async with connection.cursor().copy("copy (select v from t order by id as of position 2) to stdout") as copied:
            assert b"".join([bytes(part) async for part in copied]) == b"one\ntwo\n"
        assert readers(cluster) == 0

    play_written(tmp_path, scene)


def test_a_point_may_be_a_parameter(tmp_path: Path) -> None:
    async def scene(cluster: ServedCluster, database: SqlDatabase, history: History) -> None:
        connection = await cluster.psycopg("n1")
        for position in (2, 4, 6, 8):
            rows = history.moments[position - 1].content["t"]
            cursor = await connection.execute("select * from t order by 1 as of position %s", (position,))
            assert await cursor.fetchall() == rows
            assert len(cursor.description or ()) == len(rows[0])
        cursor = await connection.execute(
            "select v, current_user from t where id = %s as of transaction %s", (2, history.moments[1].transaction_id)
        )
        assert await cursor.fetchall() == [("two", "me")]
        cursor = await connection.execute("select count(*) from t as of time %s", (datetime.now(UTC),))
        assert await cursor.fetchall() == [(2,)]
        assert await state_of(connection.execute("select v from t as of position %s", (99,))) == "55000"
        assert await state_of(connection.execute("select v from t as of position %s", (None,))) == "22004"
        assert await state_of(connection.execute("select v from t as of time %s", ("noon",))) == "22007"
        assert await state_of(connection.execute("select k from u as of position %s", (3,))) == "42P01"
        other = await cluster.asyncpg("n1")
        prepared = await other.prepare("select v, $1::text from t where id = $2 as of position $3")
        assert [kind.name for kind in prepared.get_parameters()] == ["text", "int8", "int8"]
        for position, expected in ((2, "two"), (4, "second"), (2, "two")):
            assert [tuple(row) for row in await prepared.fetch("x", 2, position)] == [(expected, "x")]
        described = await other.prepare("select * from t as of position $1")
        assert len(await described.fetch(6)) == 3
        with pytest.raises(asyncpg.FeatureNotSupportedError, match="AS OF as a constant"):
            await described.fetch(2)
        assert readers(cluster) == 0

    play_written(tmp_path, scene)


def test_a_prepared_query_has_the_columns_of_then_and_keeps_them_when_the_schema_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(cluster: ServedCluster, database: SqlDatabase, history: History) -> None:
        client = await raw(cluster)
        answers = await client.send(parse("select * from t order by id as of position 2", "s"), describe("s"), SYNC)
        assert answers == ["1", "t", "T id:20,v:25", "Z I"]
        for _ in range(2):
            answers = await client.send(bind(statement="s"), execute(rows=1), execute(), SYNC)
            assert answers == ["2", "D 1,one", "s", "D 2,two", "C SELECT 1", "Z I"]
            session = await database.session()
            await run(session, "drop table if exists t")
            await session.close()
        answers = await client.send(bind(statement="s"), describe(kind="P"), execute(), SYNC)
        assert answers == ["2", "T id:20,v:25", "D 1,one", "D 2,two", "C SELECT 2", "Z I"]
        assert await client.send(query("select v from t as of position 2; select 7")) == [
            "T v:25", "D one", "D two", "C SELECT 2", "T ?column?:20", "D 7", "C SELECT 1", "Z I",
        ]  # fmt: skip
        at = 2

        async def resolve(self: PastCopies, target: object) -> int:
            return at

        monkeypatch.setattr(PastCopies, "resolve", resolve)
        moving = "select * from t as of time '2999-01-31'"
        await client.send(parse(moving, "m"), describe("m"), SYNC)
        at = 6
        assert await client.send(bind(statement="m"), execute(), SYNC) == ["2", "E ERROR 0A000", "Z I"]
        assert (await client.send(query(moving)))[:2] == ["T id:20,v:25,w:20", "D 1,one,7"]
        monkeypatch.undo()
        many = "with recursive n(i) as (values (1) union all select i + 1 from n where i < 1000) select i, v from n, t as of position 2"
        answers = await client.send(parse(many), bind(), execute(rows=1), execute(), SYNC)
        assert (answers[-2], readers(cluster)) == ("C SELECT 1999", 0)
        await client.send(parse(many), bind(), execute(rows=1), SYNC)
        assert readers(cluster) == 0
        client.send_nowait(parse(many), bind(), execute(rows=1), FLUSH)
        await eventually(lambda: readers(cluster) == 1)
        client.close()
        await eventually(lambda: readers(cluster) == 0)

    play_written(tmp_path, scene)


def test_a_transaction_may_look_at_the_past_until_it_writes(tmp_path: Path) -> None:
    async def scene(cluster: ServedCluster, database: SqlDatabase, history: History) -> None:
        client = await raw(cluster)
        then, now = "select count(*) from t as of position 2", "select count(*) from t"
        answers = await client.send(query("begin"), query("insert into t(v) values('x')"), query(then), query(now), query("rollback"))
        assert answers == ["C BEGIN", "Z T", "C INSERT 0 1", "Z T", "E ERROR 25001", "Z E", "E ERROR 25P02", "Z E", "C ROLLBACK", "Z I"]
        answers = await client.send(query("begin"), query(now), query(then), query("commit"))
        assert [answer for answer in answers if answer[0] in "DE"] == ["D 2", "D 2"]
        for sql in (
            "explain select v from t as of position 2",
            "select v from t for update as of position 2",
            "select set_config('application_name', 'x', false) as of position 2",
            "create view w as select v from t as of position 2",
            "insert into t(v) select v from t as of position 2",
        ):
            assert await client.send(query(sql)) == ["E ERROR 0A000", "Z I"], sql
        await client.send(query("set triplicate.as_of = 'position 4'"))
        answers = await client.send(query("select v from t where id = 2"), query("select v from t where id = 2 as of position 2"))
        assert [answer for answer in answers if answer[0] in "DE"] == ["D second", "D two"]
        client.close()

    play_written(tmp_path, scene)


@pytest.mark.parametrize(
    "statement", ["set triplicate.as_of = 'position 2'", "select v from t as of position 2"], ids=["setting", "clause"]
)
def test_the_wait_for_a_copy_ends_by_timeout_cancel_and_with_its_client(
    statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(cluster: ServedCluster, database: SqlDatabase, history: History) -> None:
        goes_on, waiting = asyncio.Event(), 0
        make = PastCopies.make

        async def held(self: PastCopies, *arguments: Any) -> Any:
            nonlocal waiting
            waiting += 1
            await goes_on.wait()
            return await make(self, *arguments)

        monkeypatch.setattr(PastCopies, "make", held)
        connection = await cluster.psycopg("n1")
        await connection.execute("set statement_timeout = '30ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="due to statement timeout"):
            await connection.execute(statement)
        await connection.execute("set statement_timeout = 0")
        work = asyncio.ensure_future(connection.execute(statement))
        entries = past_databases(cluster.cluster)._entries
        # On a slow machine the first statement ends before it asks for the copy.
        await eventually(lambda: len(entries) == 1)
        (entry,) = entries
        await eventually(lambda: entry.waiters == 1)
        await connection.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled, match="due to user request"):
            await work
        client = await raw(cluster)
        client.send_nowait(query(statement))
        await eventually(lambda: entry.waiters == 1)
        client.close()
        await eventually(lambda: entry.waiters == 0)
        goes_on.set()
        await (await connection.execute("select 1")).fetchall()
        await connection.execute(statement)
        assert waiting == 1

    play_written(tmp_path, scene)
