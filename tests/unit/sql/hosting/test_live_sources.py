"""The change feed and the cluster's state in SQL, with clients of replicated databases."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.unit.sql.pg.node_rig import ServedCluster, play_served
from tests.waiting import eventually
from triplicate.sql import back_up_database
from triplicate.sql.hosting.database_directory import log_purpose, read_info


async def rows(client: psycopg.AsyncConnection[Any], sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    return await (await client.execute(sql.encode(), parameters)).fetchall()


async def feed(
    client: psycopg.AsyncConnection[Any], table: str, position: int, most: int = 100, wait_s: float = 0
) -> list[tuple[Any, ...]]:
    """(position, seq, table, change, key, new row, old row) of the changes."""
    columns = "position, seq, table_name, change, key, new_row, old_row"
    sql = f"SELECT {columns} FROM triplicate_changes(%s, %s, %s, %s)"
    return await rows(client, sql, (table, position, most, wait_s))


async def prepared(served: ServedCluster) -> psycopg.AsyncConnection[Any]:
    leader, _ = await served.leader()
    client = await served.psycopg(leader)
    await client.execute("CREATE TABLE t (id int PRIMARY KEY, a text, b bool, c bytea)")
    await client.execute("CREATE TABLE u (x int)")
    return client


def test_the_feed_has_whole_transactions_in_order(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        client = await prepared(served)
        begin = (await feed(client, "*", 0))[-1][0]
        async with client.transaction():
            (number,) = (await rows(client, "SELECT pg_current_xact_id()"))[0]
            await client.execute("INSERT INTO t VALUES (1, 'one', true, '\\x01ff')")
            await client.execute("INSERT INTO u VALUES (7)")
            await client.execute("UPDATE t SET id = 2, a = 'two' WHERE id = 1")
        await client.execute("ALTER TABLE t SET (change_images = full)")
        await client.execute("DELETE FROM t")
        found = await feed(client, "*", begin)
        one = {"id": 1, "a": "one", "b": True, "c": "\\x01ff"}
        two = one | {"id": 2, "a": "two"}
        assert found[:3] == [
            (begin + 1, 0, "t", "insert", {"id": 1}, one, None),
            (begin + 1, 1, "u", "insert", {"rowid": 1}, {"x": 7}, None),
            (begin + 1, 2, "t", "update", {"id": 1}, two, None),
        ]
        assert found[-2:] == [
            (begin + 3, 0, "t", "delete", {"id": 2}, None, two),
            (begin + 3, None, None, "position", None, None, None),
        ]
        numbers = await rows(
            client, "SELECT DISTINCT transaction_id FROM triplicate_changes('t', $1) WHERE seq = 2".replace("$1", str(begin))
        )
        assert numbers == [(int(number),)]
        assert [row[3] for row in await feed(client, "u", begin)] == ["insert", "position"]

    play_served(tmp_path, scene)


def test_a_reader_goes_on_from_its_position_without_a_cut_transaction(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        client, far = await prepared(served), await served.psycopg(await served.follower())
        begin = (await feed(client, "*", 0))[-1][0]
        for first in range(0, 30, 3):
            async with client.transaction():
                for number in range(first, first + 3):
                    await client.execute("INSERT INTO u VALUES (%s)", (number,))
        await served.cluster.caught_up(await served.follower(), begin + 10)
        position, seen, calls = begin, list[int](), 0
        while len(seen) < 30:
            *changes, end = await feed(far, "u", position, most=4)
            assert [row[1] for row in changes] == [0, 1, 2] * (len(changes) // 3)
            assert end[0] == (changes[-1][0] if changes else position)
            seen += [row[5]["x"] for row in changes]
            position, calls = end[0], calls + 1
        assert seen == list(range(30))
        assert calls == 3

    play_served(tmp_path, scene, nodes=2)


def test_a_large_transaction_is_whole(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        client = await prepared(served)
        await client.execute("INSERT INTO t(id, a) SELECT x, repeat('a', 100) FROM generate_series(1, 3000) g(x)")
        *changes, end = await feed(client, "t", 0)
        assert [row[1] for row in changes] == list(range(3000))
        assert {row[0] for row in changes} == {end[0]}

    play_served(tmp_path, scene)


def test_a_call_waits_for_a_change_of_its_table(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        client = await prepared(served)
        leader, database = await served.leader()
        other = await served.psycopg(leader)
        begin = (await feed(client, "*", 0))[-1][0]
        waiting = asyncio.get_running_loop().create_task(feed(client, "t", begin, wait_s=30))
        await other.execute("INSERT INTO u VALUES (1)")
        await other.execute("INSERT INTO t(id) VALUES (1)")
        assert [row[3] for row in await waiting] == ["insert", "position"]
        assert [row[3] for row in await feed(client, "t", begin + 2, wait_s=0.01)] == ["position"]
        waiting = asyncio.get_running_loop().create_task(feed(client, "t", begin + 2, wait_s=30))
        await eventually(lambda: database.activity.notices.has_listeners)
        await client.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            await waiting
        await client.execute("SET statement_timeout = 20")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            await feed(client, "t", begin + 2, wait_s=30)

    play_served(tmp_path, scene)


def test_a_role_gets_the_changes_of_the_tables_that_it_may_read(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        client = await prepared(served)
        await client.execute("CREATE ROLE reader")
        await client.execute("GRANT SELECT ON u TO reader")
        await client.execute("INSERT INTO t(id) VALUES (1)")
        await client.execute("INSERT INTO u VALUES (1)")
        await client.execute("SET ROLE reader")
        assert [row[2:4] for row in await feed(client, "*", 0)] == [("u", "insert"), (None, "position")]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await feed(client, "t", 0)

    play_served(tmp_path, scene)


def test_a_role_gets_no_changes_of_an_earlier_table_of_the_same_name(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        client = await prepared(served)
        await client.execute("INSERT INTO t(id, a) VALUES (1, 'secret')")
        await client.execute("ALTER TABLE t RENAME TO hidden")
        await client.execute("CREATE TABLE t (id int PRIMARY KEY, a text)")
        await client.execute("INSERT INTO u VALUES (1)")
        await client.execute("INSERT INTO t VALUES (2, 'public')")
        await client.execute("CREATE ROLE reader")
        await client.execute("GRANT SELECT ON t TO reader")
        assert len([row for row in await feed(client, "t", 0) if row[3] == "insert"]) == 2
        await client.execute("SET ROLE reader")
        for begin in range(7):
            assert [row[4] for row in await feed(client, "*", begin)] == [{"id": 2}, None]

    play_served(tmp_path, scene)


SENSELESS_CALLS = (
    ("'u', 999999", "22023"),
    ("'u', -1", "22023"),
    ("'', 0", "22023"),
    ("'u', 0, 0", "22023"),
    ("'u', 0, 1, 61", "22023"),
    ("'missing', 0", "42P01"),
    ("'u'", "42883"),
    ("'u', 1 + 1", "0A000"),
)


def test_arguments_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        client = await prepared(served)
        for call, sqlstate in SENSELESS_CALLS:
            with pytest.raises(psycopg.Error) as refused:
                await client.execute(f"SELECT * FROM triplicate_changes({call})".encode())
            assert refused.value.sqlstate == sqlstate, call

    play_served(tmp_path, scene)


def test_a_position_that_is_not_kept_is_refused_with_the_oldest(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        client = await prepared(served)
        for number in range(5):
            await client.execute("INSERT INTO u VALUES (%s)", (number,))
        leader, database = await served.leader()
        logs = served.cluster.logs[leader]
        (name,) = await logs.names()
        await logs.acting_for(log_purpose(await read_info(served.cluster.client("admin"), "db"))).truncate(name, 4)
        with pytest.raises(psycopg.Error, match="first that may be read is 4") as refused:
            await feed(client, "u", 3)
        assert refused.value.sqlstate == "55000"
        assert (await feed(client, "u", 4))[-1][0] == database.position

    play_served(tmp_path, scene)


def test_asyncpg_reads_the_feed_in_binary(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        client = await prepared(served)
        await client.execute("INSERT INTO t(id, a) VALUES (1, 'x')")
        leader, _ = await served.leader()
        other = await served.asyncpg(leader)
        found = await other.fetch("SELECT * FROM triplicate_changes($1, $2) WHERE change = $3", "t", 0, "insert")
        assert [(row["seq"], json.loads(row["new_row"])["a"], row["committed_at"].year > 2000) for row in found] == [(0, "x", True)]

    play_served(tmp_path, scene)


def test_backups_are_shown_and_their_places_to_superusers_only(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        client = await prepared(served)
        leader, _ = await served.leader()
        admin, logs = served.cluster.client("admin"), served.cluster.logs[leader]
        assert await rows(client, "SELECT * FROM triplicate_backups") == []
        made = await back_up_database(admin, logs, "db", str(tmp_path / "backup"), place="../backup", maker="ann@host")
        assert made is not None
        columns = "kind, first_position, position, size_bytes, place, maker, key, made >= log_time"
        facts = "full", 0, made.end, made.full.size_bytes
        for one in (client, await served.psycopg(await served.follower())):
            found = await rows(one, f"SELECT {columns} FROM triplicate_backups")
            assert found == [(*facts, "../backup", "ann@host", None, True)]
        await client.execute("CREATE ROLE r")
        await client.execute("SET ROLE r")
        assert await rows(client, f"SELECT {columns} FROM triplicate_backups") == [(*facts, None, None, None, True)]

    play_served(tmp_path / "nodes", scene, nodes=2)


def test_the_cluster_is_shown(tmp_path: Path) -> None:
    async def scene(served: ServedCluster) -> None:
        client = await prepared(served)
        leader, database = await served.leader()
        assert sorted(await rows(client, "SELECT node, is_this_node FROM triplicate_nodes")) == [
            ("n1", leader == "n1"),
            ("n2", leader == "n2"),
        ]
        copies = await rows(
            client, "SELECT c.node, c.position FROM triplicate_copies c JOIN triplicate_nodes n ON n.node = c.node WHERE is_leader"
        )
        assert copies == [(leader, database.position)]
        segments = await rows(client, "SELECT first_position, end_position, state FROM triplicate_log ORDER BY 1")
        assert segments[0][0] == 0
        assert segments[-1][1:] == (None, "open")
        assert await rows(client, "SELECT count(*) FROM triplicate_snapshots") == [(0,)]
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            await client.execute("SELECT * FROM triplicate_nodes, t")

    play_served(tmp_path, scene, nodes=2)
