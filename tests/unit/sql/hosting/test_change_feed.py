"""The change feed in Python, over nodes in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.unit.sql.cluster import Cluster, play, run, state_of
from triplicate.sql import ChangeType, CommittedTransaction, changes
from triplicate.sql.hosting.database_directory import log_purpose, read_info


async def taken(feed: AsyncGenerator[CommittedTransaction, None], count: int) -> list[CommittedTransaction]:
    async with asyncio.timeout(10):
        return [await anext(feed) for _ in range(count)]


def test_a_program_follows_whole_transactions_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        session = await database.session()
        await run(session, "create table t(id integer primary key, a)")
        await run(session, "begin")
        await run(session, "insert into t(a) values('x')")
        await run(session, "update t set a = 'y'")
        await run(session, "commit")
        client, logs = cluster.client("reader"), cluster.logs["reader"]
        feed = changes(client, "db", logs=logs)
        made, filled = await taken(feed, 2)
        assert [(one.type, one.sql) for one in made.changes] == [(ChangeType.SCHEMA, "CREATE TABLE t(id integer primary key, a)")]
        assert [(one.seq, one.type, one.table, one.key, one.new, one.old) for one in filled.changes] == [
            (0, ChangeType.INSERT, "t", {"id": 1}, {"id": 1, "a": "x"}, None),
            (1, ChangeType.UPDATE, "t", {"id": 1}, {"id": 1, "a": "y"}, None),
        ]
        assert filled.position == database.position
        following = asyncio.get_running_loop().create_task(taken(feed, 1))
        await run(session, "delete from t")
        (deleted,) = await following
        await feed.aclose()
        assert [(one.type, one.key, one.new) for one in deleted.changes] == [(ChangeType.DELETE, {"id": 1}, None)]
        again = changes(client, "db", made.position, tables=["T"], logs=logs)
        assert await taken(again, 2) == [filled, deleted]
        await again.aclose()

    play(tmp_path, scene)


def test_other_tables_are_left_out_and_the_places_of_changes_stay(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        await run(session, "create table u(a)")
        await run(session, "insert into u values(1)")
        await run(session, "begin")
        await run(session, "insert into u values(2)")
        await run(session, "insert into t values(3)")
        await run(session, "commit")
        client = cluster.client("reader")
        feed = changes(client, "db", tables=["t"], logs=cluster.logs["reader"])
        ((change,),) = [one.changes for one in await taken(feed, 1)]
        assert (change.seq, change.key, change.new) == (1, {"rowid": 1}, {"a": 3})
        await feed.aclose()

    play(tmp_path, scene)


@pytest.mark.parametrize(("name", "position", "sqlstate"), [("missing", 0, "3D000"), ("db", 1, "55000"), ("db", -1, "22023")])
def test_a_feed_that_cannot_begin_is_refused(tmp_path: Path, name: str, position: int, sqlstate: str) -> None:
    async def scene(cluster: Cluster) -> None:
        session = await (await cluster.leader()).session()
        for number in range(3):
            await run(session, f"create table t{number}(a)")
        client, logs = cluster.client("reader"), cluster.logs["reader"]
        info = await read_info(client, "db")
        await logs.acting_for(log_purpose(info)).truncate(info.log, 2)
        assert await state_of(anext(changes(client, name, position, logs=logs))) == sqlstate

    play(tmp_path, scene)
