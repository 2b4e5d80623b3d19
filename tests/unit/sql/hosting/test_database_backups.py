"""Backups of a cluster's databases as a whole: what travels with them, and what is refused before anything is changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.log.encryption_rig import KEYS
from tests.unit.sql.backup.past_rig import STATEMENTS, content_of, ones, written
from tests.unit.sql.cluster import Cluster, play, run
from tests.unit.sql.hosting.restoring_rig import hosted
from tests.unit.sql.role_rig import with_roles
from triplicate.errors import ArgumentError, BackupDamaged, NotKept, SqlError
from triplicate.log import KnownKeys, LogSettings
from triplicate.sql import (
    Administrator,
    AtPosition,
    back_up_database,
    clone_database,
    create_database,
    database_names,
    drop_database,
    restore_database,
    set_administrator,
    verify_backup,
)

SETTINGS = LogSettings(ensemble_size=1, write_quorum=1, ack_quorum=1)


def test_roles_the_administrator_and_the_lease_travel_with_a_backup(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        client = cluster.client("command")
        logs = cluster.logs["command"]
        await (await with_roles(await cluster.leader(), "ann")).close()
        administrator = Administrator.of_password(client, "root", "secret")
        await set_administrator(client, "db", administrator)
        folder = str(tmp_path / "backup")
        await back_up_database(client, logs, "db", folder)
        (tmp_path / "work").mkdir()
        info = await restore_database(client, logs, folder, None, ones("again"), str(tmp_path / "work"))
        assert (info.administrator, info.lease_ms) == (administrator, 600)
        database = await hosted(cluster, "again", info.identity)
        assert (await database.role_login("ann")) is not None
        assert (await database.role_login("root")) == administrator.login
        assert not list((tmp_path / "work").iterdir())

    play(tmp_path / "nodes", scene, lease_s=0.6)


def test_a_database_is_restored_after_its_cluster_is_gone(tmp_path: Path) -> None:
    folder = str(tmp_path / "backup")

    async def before(cluster: Cluster) -> object:
        history = await written(await cluster.leader())
        client = cluster.client("command")
        await back_up_database(client, cluster.logs["command"], "db", folder)
        return history.moments[-1].content

    async def after(cluster: Cluster) -> object:
        client = cluster.client("command")
        assert (await verify_backup(client.host, folder)).database == "db"
        await drop_database(client, "db")
        (tmp_path / "work").mkdir()
        info = await restore_database(client, cluster.logs["command"], folder, None, ones("db"), str(tmp_path / "work"))
        return content_of(Path((await hosted(cluster, "db", info.identity)).path))

    assert play(tmp_path / "first", before) == play(tmp_path / "second", after)


def test_a_clone_at_the_beginning_is_empty(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await written(await cluster.leader())
        client = cluster.client("command")
        (tmp_path / "work").mkdir()
        info = await clone_database(client, cluster.logs["command"], "db", AtPosition(0), ones("empty"), str(tmp_path / "work"))
        database = await hosted(cluster, "empty", info.identity)
        session = await database.session()
        await run(session, "create table t(a)")
        await session.close()
        assert database.position == 1

    play(tmp_path / "nodes", scene)


def test_an_encrypted_database_is_restored_with_a_key_or_expressly_without(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        cluster.keys = dict.fromkeys(("command", "n1"), KnownKeys(KEYS))
        client, work = cluster.client("command"), str(tmp_path / "work")
        logs = cluster.logs["command"]
        await create_database(client, "hidden", SETTINGS, logs=logs, key_id="new")
        await cluster.start("n1")
        history = await written(await cluster.leader("hidden"))
        folder = str(tmp_path / "backup")
        assert (made := await back_up_database(client, logs, "hidden", folder)) is not None
        assert made.is_encrypted
        (tmp_path / "work").mkdir()
        with pytest.raises(ArgumentError, match="--unencrypted"):
            await restore_database(client, logs, folder, None, ones("again"), work)
        assert "again" not in await database_names(client)
        again = await restore_database(client, logs, folder, None, replace(ones("again"), key_id="new"), work)
        plain = await restore_database(client, logs, folder, None, ones("plain"), work, is_unencrypted=True)
        clone = await clone_database(client, logs, "hidden", None, ones("clone"), work)
        for info, key_id in ((again, "new"), (plain, ""), (clone, "new")):
            assert (await logs.head(info.log)).key_id == key_id
            assert content_of(Path((await hosted(cluster, info.name, info.identity)).path)) == history.moments[-1].content

    play(tmp_path / "nodes", scene, nodes=0)


def test_refusals_change_nothing(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await written(await cluster.leader())
        client, work = cluster.client("command"), str(tmp_path / "work")
        logs, folder = cluster.logs["command"], str(tmp_path / "backup")
        await back_up_database(client, logs, "db", folder)
        (tmp_path / "work").mkdir()
        names = await logs.names()
        with pytest.raises(SqlError, match="--replace"):
            await restore_database(client, logs, folder, None, ones("db"), work)
        with pytest.raises(SqlError, match="--replace"):
            await clone_database(client, logs, "db", None, ones("db"), work)
        with pytest.raises(NotKept):
            await restore_database(client, logs, folder, AtPosition(1), ones("again"), work)
        with pytest.raises(NotKept):
            await clone_database(client, logs, "db", AtPosition(99), ones("again"), work)
        with pytest.raises(ArgumentError, match="there is no backup"):
            await restore_database(client, logs, str(tmp_path), None, ones("again"), work)
        with pytest.raises(SqlError, match="does not exist"):
            await back_up_database(client, logs, "nothing", str(tmp_path / "other"))
        assert await database_names(client) == ["db"]
        assert await logs.names() == names
        assert not list((tmp_path / "work").iterdir())
        assert not (tmp_path / "other").exists()

    play(tmp_path / "nodes", scene)


def test_an_encrypted_backup_shows_nothing_and_needs_its_key(tmp_path: Path) -> None:
    keys, others = KnownKeys({"old": b"o" * 32, "new": b"n" * 32}), KnownKeys({"new": b"x" * 32})
    folder, archive = tmp_path / "backup", tmp_path / "backup.tar"

    async def scene(cluster: Cluster) -> None:
        client, logs = cluster.client("command"), cluster.logs["command"]
        database = await cluster.leader()
        administrator = Administrator.of_password(client, "root", "secret")
        await set_administrator(client, "db", administrator)
        history = await written(database, STATEMENTS[:5])
        work = tmp_path / "work"
        work.mkdir()
        for path in (folder, archive):
            made = await back_up_database(client, logs, "db", str(path), keys=keys, work_folder=str(work))
            assert made is not None
            assert made.key_id == "new"
        history.moments += (await written(database, STATEMENTS[5:])).moments
        refused = ((None, "give the file that has it as --key-file"), (others, "another key of this id"), (KnownKeys({}), "not in"))
        for wrong, reason in refused:
            with pytest.raises(ArgumentError, match=reason):
                await back_up_database(client, logs, "db", str(folder), is_incremental=True, keys=wrong)
        longer = await back_up_database(client, logs, "db", str(folder), is_incremental=True, keys=keys)
        assert longer is not None
        assert longer.end == database.position
        stored = b"".join(path.read_bytes() for path in [archive, *folder.iterdir()])
        for word in (b"SQLite format", b"second", b"three", b"TRBL", administrator.verifier.encode(), b"root"):
            assert word not in stored
        assert len(list(folder.iterdir())) == 3
        for wrong, reason in ((None, "--key-file"), (others, "another key of this id")):
            with pytest.raises(ArgumentError, match=reason):
                await verify_backup(client.host, str(folder), wrong)
            with pytest.raises(ArgumentError, match=reason):
                await restore_database(client, logs, str(folder), None, ones("again"), str(work), keys=wrong)
        assert await database_names(client) == ["db"]
        assert not list(work.iterdir())
        assert await verify_backup(client.host, str(folder), keys) == longer
        assert longer.administrator == (administrator.name, administrator.verifier)
        assert (await verify_backup(client.host, str(archive), keys)).full.end == history.moments[4].position
        for name, target, moment in (("whole", None, history.moments[-1]), ("part", AtPosition(6), history.moments[5])):
            info = await restore_database(client, logs, str(folder), target, ones(name), str(work), keys=keys)
            assert info.administrator == administrator
            again = await hosted(cluster, name, info.identity)
            assert content_of(Path(again.path)) == moment.content
        part = next(folder.glob("log-*"))
        part.write_bytes(part.read_bytes()[:-1] + b"\0")
        with pytest.raises(BackupDamaged, match=part.name):
            await verify_backup(client.host, str(folder), keys)

    play(tmp_path / "nodes", scene)


def test_a_backup_in_clear_gets_no_encrypted_parts(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        client, logs = cluster.client("command"), cluster.logs["command"]
        await written(await cluster.leader())
        folder, keys = str(tmp_path / "backup"), KnownKeys({"a": b"a" * 32})
        with pytest.raises(ArgumentError, match="there is no key in"):
            await back_up_database(client, logs, "db", folder, keys=KnownKeys({}), work_folder=str(tmp_path))
        with pytest.raises(ArgumentError, match="needs a work folder"):
            await back_up_database(client, logs, "db", folder, keys=keys)
        await back_up_database(client, logs, "db", folder)
        with pytest.raises(ArgumentError, match="is not encrypted: make a full one"):
            await back_up_database(client, logs, "db", folder, is_incremental=True, keys=keys)

    play(tmp_path / "nodes", scene)
