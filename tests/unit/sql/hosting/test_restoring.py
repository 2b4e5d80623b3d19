"""Databases that begin with a content: restored, cloned, and in the place of others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from tests.unit.sql.backup.past_rig import command_on, content_of, ones, past_of, restored, writer_of, written
from tests.unit.sql.cluster import Cluster, play, run
from tests.unit.sql.hosting.restoring_rig import hosted
from triplicate.errors import BackupDamaged, SqlError
from triplicate.sql import database_names, read_info
from triplicate.sql.backup.core.target import AtPosition
from triplicate.sql.hosting.dropping import dropped_databases
from triplicate.sql.hosting.restoring import create_from_file


def test_a_restored_database_equals_the_one_that_was_backed_up_and_goes_on(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        history = await written(await cluster.leader())
        _, _, source = await command_on(cluster)
        manifest = await writer_of(cluster, source).full(str(tmp_path / "backup"))
        assert manifest.end == history.moments[-1].position
        info = await restored(cluster, tmp_path / "backup", None, ones("again"))
        database = await hosted(cluster, "again", info.identity)
        assert content_of(Path(database.path)) == history.moments[-1].content
        assert info.identity != source.identity
        session = await database.session()
        await run(session, "insert into t(v) values('new')")
        ((number,),) = await run(session, "select pg_current_xact_id()")
        old_id = history.moments[-1].transaction_id
        assert cast("int", number) >> 40 > (old_id >> 40) + 1000
        assert await run(session, f"select pg_xact_status('{old_id}'), pg_xact_status('{old_id + 1}')") == [("committed", "aborted")]
        await session.close()
        assert database.position == manifest.end + 1
        later = await cluster.start("n9")
        while (other := later.databases.get("again")) is None or other.position < database.position:
            await asyncio.sleep(0.005)
        assert content_of(Path(other.path)) == content_of(Path(database.path))

    play(tmp_path / "nodes", scene)


def test_a_restore_replaces_a_database_only_when_asked(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        history = await written(await cluster.leader())
        client, _, source = await command_on(cluster)
        await writer_of(cluster, source).full(str(tmp_path / "backup"))
        session = await (await cluster.leader()).session()
        await run(session, "insert into t(v) values('behind the backup')")
        await session.close()
        with pytest.raises(SqlError, match="already exists") as refused:
            await restored(cluster, tmp_path / "backup", None, ones("db"))
        assert refused.value.sqlstate == "42P04"
        assert (await read_info(client, "db")).identity == source.identity
        info = await restored(cluster, tmp_path / "backup", None, ones("db", replaces=True))
        database = await hosted(cluster, "db", info.identity)
        assert content_of(Path(database.path)) == history.moments[-1].content
        assert [one.info.identity for one in await dropped_databases(client)] == [source.identity]
        assert await database_names(client) == ["db"]

    play(tmp_path / "nodes", scene)


def test_a_clone_is_the_database_as_it_was(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        history = await written(await cluster.leader())
        client, logs, source = await command_on(cluster)
        moment, path = history.moments[3], str(tmp_path / "clone.db")
        await (await past_of(cluster)).make(AtPosition(moment.position), path)
        info = await create_from_file(client, logs, path, source.identity, ones("clone"))
        assert content_of(Path((await hosted(cluster, "clone", info.identity)).path)) == moment.content

    play(tmp_path / "nodes", scene)


def test_a_file_of_another_database_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await written(await cluster.leader())
        client, logs, _ = await command_on(cluster)
        path = str(tmp_path / "clone.db")
        await (await past_of(cluster)).make(None, path)
        with pytest.raises(BackupDamaged, match="belongs to another database"):
            await create_from_file(client, logs, path, b"x" * 16, ones("clone"))
        assert await database_names(client) == ["db"]
        assert len(await logs.names()) == 1

    play(tmp_path / "nodes", scene)
