"""The records of a database's backups: written behind a backup, kept with the database, gone with its log."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.sql.backup.past_rig import written
from tests.unit.sql.cluster import Cluster, play, run
from triplicate.client import Client
from triplicate.errors import FormatError
from triplicate.metadata import own_paths
from triplicate.sql import back_up_database, drop_database, rename_database, undelete_database
from triplicate.sql.backup.core import backup_records
from triplicate.sql.backup.core.manifest import PartKind
from triplicate.sql.hosting.database_directory import read_info
from triplicate.sql.hosting.dropping import purge_dropped
from triplicate.sql.hosting.recorded_backups import record_backup, recorded_backups


async def places(client: Client, name: str = "db") -> list[tuple[str, str, str]]:
    found = await recorded_backups(client, (await read_info(client, name)).identity)
    return [(one.kind.value, one.place, one.maker) for one in found]


def test_full_backups_and_increments_are_recorded_once_they_are_complete(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await written(await cluster.leader())
        client, logs, folder = cluster.client("command"), cluster.logs["command"], str(tmp_path / "backup")
        info = await read_info(client, "db")
        assert await recorded_backups(client, info.identity) == ()
        made = await back_up_database(client, logs, "db", folder, place="../backup", maker="ann@host")
        session = await (await cluster.leader()).session()
        await run(session, "create table further(a)")
        longer = await back_up_database(client, logs, "db", folder, is_incremental=True)
        assert made is not None
        assert longer is not None
        assert await back_up_database(client, logs, "db", folder, is_incremental=True) is None
        full, increment = await recorded_backups(client, info.identity)
        assert full == backup_records.record_of(made, "../backup", "ann@host")
        assert increment == backup_records.record_of(longer, folder, client.host.name)
        assert (increment.first, increment.end) == (full.end, longer.end)

    play(tmp_path / "nodes", scene)


def test_a_backup_that_cannot_be_recorded_is_complete_and_the_caller_is_told(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await written(await cluster.leader())
        client, logs = cluster.client("command"), cluster.logs["command"]
        info = await read_info(client, "db")
        path = own_paths.backups_path(client.metadata.own_root, info.identity)
        await client.metadata.tree.create(path, b'{"v":2}', parents=True)
        told: list[Exception] = []
        made = await back_up_database(client, logs, "db", str(tmp_path / "backup"), on_unrecorded=told.append)
        assert made is not None
        assert [type(one) for one in told] == [FormatError]
        assert (await client.metadata.tree.get(path))[0] == b'{"v":2}'

    play(tmp_path / "nodes", scene)


def test_records_stay_with_a_renamed_and_an_undeleted_database_and_go_with_its_log(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        client, logs = cluster.client("command"), cluster.logs["command"]
        await cluster.leader()
        await back_up_database(client, logs, "db", str(tmp_path / "backup"), place="b", maker="m")
        identity = (await read_info(client, "db")).identity
        await rename_database(client, "db", "newer")
        assert await places(client, "newer") == [("full", "b", "m")]
        await drop_database(client, "newer")
        await undelete_database(client, "newer")
        assert await places(client, "newer") == [("full", "b", "m")]
        await drop_database(client, "newer")
        while not await purge_dropped(client, logs, 0.0):
            await asyncio.sleep(0.005)
        path = own_paths.backups_path(client.metadata.own_root, identity)
        assert await client.metadata.tree.exists(path) is None

    play(tmp_path / "nodes", scene)


@pytest.mark.parametrize("is_first", [True, False])
def test_backups_that_end_at_the_same_time_are_all_recorded(tmp_path: Path, is_first: bool) -> None:
    async def scene(cluster: Cluster) -> None:
        client, identity = cluster.client("command"), b"i" * 16
        records = [backup_records.BackupRecord(PartKind.FULL, number, 0, number, 0, 1, "b", "m") for number in range(5)]
        if not is_first:
            await record_backup(client, identity, records[0])
        async with asyncio.TaskGroup() as tasks:
            for one in records:
                tasks.create_task(record_backup(client, identity, one))
        assert await recorded_backups(client, identity) == tuple(records)

    play(tmp_path / "nodes", scene, nodes=0)
