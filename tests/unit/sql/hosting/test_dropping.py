"""Databases that are dropped, brought back, renamed, and deleted with their logs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.sql.cluster import SETTINGS, Cluster, play, run, state_of
from triplicate.errors import ConnectionLost, CorruptionError, FormatError, NoNode, NoSuchLog, NotEmpty, SqlError
from triplicate.log import LogSettings
from triplicate.metadata import InjectedFault, TreeOperation, own_paths, read_identified
from triplicate.replica import deletions_of
from triplicate.sql import create_database, database_info, drop_database, dropped_databases, rename_database, undelete_database
from triplicate.sql.hosting.dropping import decode_tombstone, encode_tombstone, purge_dropped

ALONE = LogSettings(ensemble_size=1, write_quorum=1, ack_quorum=1)


async def filled(cluster: Cluster) -> None:
    session = await (await cluster.leader()).session()
    await run(session, "create table t(a)")
    await run(session, "insert into t values(1), (2)")


async def gone(cluster: Cluster, name: str = "db") -> None:
    while any(node.databases.get(name) is not None for node in cluster.nodes.values()):
        await asyncio.sleep(0.005)


def test_a_dropped_database_is_gone_with_its_sessions_and_copies_and_its_name_is_free(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await filled(cluster)
        await cluster.create("other")
        sessions = [await cluster.database(name).session() for name in cluster.nodes]
        await drop_database(cluster.client("admin"), "db")
        assert await state_of(database_info(cluster.client("admin"), "db")) == "3D000"
        for session in sessions:
            assert (await asyncio.wait_for(session.ended, 5)).sqlstate == "57P01"
        await gone(cluster)
        for name, node in cluster.nodes.items():
            while list((tmp_path / name / "databases" / "db").iterdir()):
                await asyncio.sleep(0.005)
            assert node.failure is None
        assert await state_of(drop_database(cluster.client("admin"), "db")) == "3D000"
        await create_database(cluster.client("admin"), "db", ALONE)
        again = await (await cluster.leader()).session()
        assert await state_of(run(again, "select * from t")) == "42P01"
        assert (await cluster.leader("other")).is_leader

    play(tmp_path, scene, nodes=2)


def test_a_dropped_database_comes_back_with_all_that_was_acknowledged(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await filled(cluster)
        admin = cluster.client("admin")
        await drop_database(admin, "db")
        await gone(cluster)
        (dropped,) = await dropped_databases(admin)
        assert (dropped.info.name, dropped.state) == ("db", "dropped")
        await create_database(admin, "db", ALONE)
        assert await state_of(undelete_database(admin, "db")) == "42P04"
        await cluster.leader()
        await rename_database(admin, "db", "newer")
        await undelete_database(admin, "db")
        assert await dropped_databases(admin) == []
        while any(
            node.databases.hosted.get("db") is None or node.databases.hosted["db"].info != dropped.info for node in cluster.nodes.values()
        ):
            await asyncio.sleep(0.005)
        session = await (await cluster.leader()).session()
        assert await run(session, "select count(*) from t") == [(2,)]
        assert await state_of(undelete_database(admin, "db")) == "3D000"

    play(tmp_path, scene, nodes=2)


def test_a_renamed_database_keeps_its_content_and_its_copies(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await filled(cluster)
        admin = cluster.client("admin")
        await cluster.create("taken")
        assert await state_of(rename_database(admin, "db", "taken")) == "42P04"
        assert await state_of(rename_database(admin, "none", "x")) == "3D000"
        await rename_database(admin, "db", "shop")
        await gone(cluster)
        session = await (await cluster.leader("shop")).session()
        assert await run(session, "select count(*) from t") == [(2,)]
        await run(session, "insert into t values(3)")
        for name in cluster.nodes:
            await cluster.serving(name, 0, "shop")
        assert [node.databases.hosted["shop"].start_position > 0 for node in cluster.nodes.values()] == [True, True]
        assert (await database_info(admin, "shop")).log.startswith("database.db.")

    play(tmp_path, scene, nodes=2)


def test_the_log_of_a_dropped_database_is_deleted_when_it_was_kept_long_enough(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start_with("n1", replace(SETTINGS, node_id="n1", directory=str(tmp_path / "n1"), dropped_keep_s=2.0))
        await filled(cluster)
        admin = cluster.client("admin")
        info = await drop_database(admin, "db")
        assert await purge_dropped(admin, cluster.logs["admin"], 60.0) == []
        await cluster.logs["admin"].head(info.log)
        while await dropped_databases(admin):
            await asyncio.sleep(0.02)
        with pytest.raises(NoSuchLog):
            await cluster.logs["admin"].head(info.log)
        assert await state_of(undelete_database(admin, "db")) == "3D000"

    play(tmp_path, scene, nodes=0)


def test_a_log_that_is_being_deleted_is_not_brought_back_and_the_deletion_goes_on(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        admin = cluster.client("admin")
        info = await drop_database(admin, "db")
        path = own_paths.dropped_database_path(admin.metadata.own_root, info.identity)
        (dropped,) = await dropped_databases(admin)
        await admin.metadata.tree.set(path, encode_tombstone(dropped.record, "purging"))
        assert await state_of(undelete_database(admin, "db")) == "3D000"
        assert [one.name for one in await purge_dropped(admin, cluster.logs["admin"], 60.0)] == ["db"]
        assert await dropped_databases(admin) == []

    play(tmp_path, scene, nodes=0)


def test_nothing_is_given_up_for_a_list_of_databases_that_is_old(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        _, tree = cluster.stage.lagging_logs()
        await cluster.start_with("n1", replace(SETTINGS, node_id="n1", directory=str(tmp_path / "n1")), tree)
        await filled(cluster)
        database = await cluster.leader()
        root = cluster.client("admin").metadata.own_root
        tree.behind[own_paths.database_path(root, "db")] = None
        await cluster.create("second")
        await cluster.leader("second")
        assert cluster.database("n1") is database
        assert database.is_leader

    play(tmp_path, scene, nodes=0)


def test_a_database_whose_node_vanished_without_a_drop_leaves_its_copy(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await filled(cluster)
        admin = cluster.client("admin")
        path = own_paths.database_path(admin.metadata.own_root, "db")
        # As a store that was restored from an old backup lacks it.
        while await admin.metadata.tree.exists(path) is not None:
            with suppress(NoNode, NotEmpty):
                await admin.metadata.tree.multi(await deletions_of(admin.metadata.tree, await read_identified(admin.metadata.tree, path)))
        await gone(cluster)
        assert (tmp_path / "n1" / "databases" / "db" / "main.db").exists()

    play(tmp_path, scene)


def test_a_drop_whose_outcome_is_unknown_says_so(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        admin = cluster.client("admin")
        faults = [InjectedFault(raise_after=ConnectionLost("broke before the answer came"))]
        cluster.stage.store.fault = lambda session_id, operation, path: faults.pop() if operation == "multi" and faults else None
        with pytest.raises(SqlError, match="the change may have been made") as told:
            await drop_database(admin, "db")
        assert told.value.sqlstate == "08007"
        assert len(await dropped_databases(admin)) == 1

    play(tmp_path, scene, nodes=0)


def test_a_tombstone_is_read_as_it_was_written_in_its_first_format() -> None:
    record = '{"created":5,"id":"' + "ab" * 16 + '","log":"database.db.abababab","name":"db","v":1}'
    data = encode_tombstone(record, "dropped")
    assert data == b'{"record":' + ('"' + record.replace('"', '\\"') + '"').encode() + b',"state":"dropped","v":1}'
    dropped = decode_tombstone(data, 7, 1)
    assert (dropped.info.name, dropped.info.identity, dropped.dropped_ms, dropped.state) == ("db", b"\xab" * 16, 7, "dropped")
    with pytest.raises(FormatError):
        decode_tombstone(b'{"v":2}', 0, 0)


def test_a_drop_that_is_repeated_leaves_a_database_alone_that_was_made_under_the_name_meanwhile(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        admin, other = cluster.client("admin"), cluster.client("other")
        lost = True
        multi = admin.metadata.tree.multi

        async def applied_and_lost(operations: Sequence[TreeOperation]) -> None:
            nonlocal lost
            await multi(operations)
            if lost:
                lost = False
                await create_database(other, "db", ALONE)
                raise ConnectionLost("broke before the answer came")

        admin.metadata.tree.multi = applied_and_lost  # type: ignore[method-assign]
        with pytest.raises(SqlError, match="the change may have been made") as told:
            await drop_database(admin, "db")
        assert told.value.sqlstate == "08007"
        assert (await database_info(other, "db")).name == "db"

    play(tmp_path, scene, nodes=0)


def test_a_log_that_cannot_be_deleted_does_not_keep_others_from_it(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        admin = cluster.client("admin")
        await cluster.create("second")
        for name in ("db", "second"):
            await drop_database(admin, name)
        broken = (await dropped_databases(admin))[0].info
        head = f"{own_paths.logs_path(admin.metadata.own_root)}/{broken.log}"
        await admin.metadata.tree.set(head, b"no head")
        with pytest.raises(CorruptionError):
            await purge_dropped(admin, cluster.logs["admin"], 0.0)
        assert [one.info for one in await dropped_databases(admin)] == [broken]

    play(tmp_path, scene, nodes=0)
