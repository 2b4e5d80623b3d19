"""NOTIFY, pg_notify() and LISTEN with real clients of a replicated database."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import psycopg
import pytest

from tests.unit.sql.pg.node_rig import ServedCluster, notes, play_served
from tests.waiting import eventually
from triplicate.sql.pg.syntax.notify_statements import NotifyCall


def test_a_notification_reaches_sessions_on_every_node(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        leader, _ = await served.leader()
        sender, near, far = await served.psycopg(leader), await served.psycopg(leader), await served.psycopg(await served.follower())
        for listener in (near, far):
            await listener.execute("LISTEN Orders")
        await sender.execute("NOTIFY orders, 'it''s 1'")
        await sender.execute("SELECT pg_notify(%s, %s)", ("orders", "2"))
        await sender.execute("NOTIFY elsewhere, '3'; NOTIFY \"Orders\"; SELECT pg_notify('orders', NULL)")
        expected = [("orders", "it's 1"), ("orders", "2"), ("orders", "")]
        assert await notes(near, 3) == expected
        assert await notes(far, 3) == expected

    play_served(tmp_path, scene, nodes=2)


def test_a_notification_is_sent_at_the_commit_and_not_before(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        leader, _ = await served.leader()
        sender, listener = await served.psycopg(leader), await served.psycopg(leader)
        await listener.execute("LISTEN c")
        await sender.execute("BEGIN")
        await sender.execute("SAVEPOINT s")
        await sender.execute("NOTIFY c, 'undone'")
        await sender.execute("ROLLBACK TO s")
        await sender.execute("NOTIFY c, 'kept'")
        await sender.execute("NOTIFY c, 'other'")
        await sender.execute("NOTIFY c, 'kept'")
        await listener.execute("SELECT 1")
        assert [note async for note in listener.notifies(timeout=0.05)] == []
        await sender.execute("COMMIT")
        assert await notes(listener, 2) == [("c", "kept"), ("c", "other")]
        await sender.execute("BEGIN")
        await sender.execute("NOTIFY c, 'rolled back'")
        await sender.execute("ROLLBACK")
        await sender.execute("NOTIFY c, 'last'")
        assert await notes(listener, 1) == [("c", "last")]

    play_served(tmp_path, scene)


def test_a_client_gets_notifications_between_its_transactions(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        leader, _ = await served.leader()
        sender, listener = await served.psycopg(leader), await served.psycopg(leader)
        seen: list[str] = []
        listener.add_notify_handler(lambda note: seen.append(note.payload))
        await listener.execute("LISTEN c")
        await listener.execute("BEGIN")
        await listener.execute("SELECT 1")
        await sender.execute("NOTIFY c, 'while it reads'")
        await listener.execute("SELECT 2")
        assert seen == []
        await listener.execute("COMMIT")
        assert seen == ["while it reads"]
        await listener.execute("NOTIFY c, 'its own'")
        assert seen[1:] == ["its own"]

    play_served(tmp_path, scene)


def test_listen_takes_effect_at_the_commit(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        leader, _ = await served.leader()
        sender, listener = await served.psycopg(leader), await served.psycopg(leader)
        await listener.execute("BEGIN")
        await listener.execute("LISTEN a")
        await listener.execute("ROLLBACK")
        await listener.execute("BEGIN")
        await listener.execute("LISTEN b")
        await listener.execute("COMMIT")
        await listener.execute("LISTEN d")
        await listener.execute("UNLISTEN d")
        for channel in "adb":
            await sender.execute(f"NOTIFY {channel}".encode())
        assert await notes(listener, 1) == [("b", "")]
        await listener.execute("UNLISTEN *")
        await sender.execute("NOTIFY b")
        assert [note async for note in listener.notifies(timeout=0.05)] == []

    play_served(tmp_path, scene)


def test_a_program_waits_for_commits(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        leader, database = await served.leader()
        sender, far = await served.psycopg(leader), await served.psycopg(await served.follower())
        await far.execute("LISTEN triplicate_changes")
        await sender.execute("CREATE TABLE t (a int)")
        await sender.execute("INSERT INTO t VALUES (1)")
        seen: list[str] = []
        while "t" not in seen:
            ((channel, payload),) = await notes(far, 1)
            facts = json.loads(payload)
            seen += facts["tables"]
            assert channel == "triplicate_changes"
        assert facts["position"] == database.position

    play_served(tmp_path, scene, nodes=2)


def test_asyncpg_listens_and_notifies(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        leader, _ = await served.leader()
        client = await served.asyncpg(leader)
        seen: list[tuple[str, str]] = []
        await client.add_listener("c", lambda _connection, _pid, channel, payload: seen.append((channel, payload)))
        async with client.transaction():
            await client.execute("SELECT pg_notify($1, $2)", "c", "1")
            assert seen == []
        await client.fetchval("SELECT pg_notify('c', '2')")
        await eventually(lambda: seen == [("c", "1"), ("c", "2")])
        await client.reset()
        await client.execute("NOTIFY c, '3'")
        await asyncio.sleep(0)
        assert len(seen) == 2

    play_served(tmp_path, scene)


REFUSED = (
    ("NOTIFY", "42601"),
    ("NOTIFY a b", "42601"),
    ("NOTIFY a, 1", "42601"),
    ("LISTEN *", "42601"),
    ("NOTIFY a, '" + "x" * 8000 + "'", "22023"),
    ("SELECT pg_notify('" + "x" * 64 + "', '')", "22023"),
    ("SELECT pg_notify('', '')", "22023"),
    ("NOTIFY triplicate_changes", "42939"),
)


def test_a_notification_that_may_not_be_sent_is_refused(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        leader, _ = await served.leader()
        client = await served.psycopg(leader)
        for statement, sqlstate in REFUSED:
            with pytest.raises(psycopg.Error) as refused:
                await client.execute(statement.encode())
            assert refused.value.sqlstate == sqlstate, statement

    play_served(tmp_path, scene)


def test_a_node_that_follows_refuses_notify(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        client = await served.psycopg(await served.follower())
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await client.execute("NOTIFY c")

    play_served(tmp_path, scene, nodes=2)


def test_the_parameters_of_a_call_are_counted() -> None:
    assert NotifyCall("n", ("c", 2)).parameters == 2
    assert NotifyCall("n", ("c", None)).parameters == 0
