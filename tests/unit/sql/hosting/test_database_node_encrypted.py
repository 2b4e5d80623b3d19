"""A database whose log and snapshots are encrypted: nodes need the key, and nothing of a row is on a bookie in clear."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.log.encryption_rig import KEYS, SECRET, stored
from tests.unit.sql.cluster import Cluster, play, run
from tests.unit.sql.snapshot_rig import ON_REQUEST, door_of, file_of, filled, lose, make_snapshots, truncate
from tests.waiting import eventually
from triplicate.errors import LogKeyMissing, SqlError
from triplicate.log import KnownKeys, LogSettings, SnapshotState
from triplicate.sql import create_database

SETTINGS = LogSettings(ensemble_size=1, write_quorum=1, ack_quorum=1, compression="none")


async def create(cluster: Cluster, *nodes: str) -> None:
    """Create a database in the place of the one that the cluster has, and give some nodes the key."""
    cluster.keys = dict.fromkeys(("admin", "looker", *nodes), KnownKeys(KEYS))
    await create_database(cluster.client("admin"), "db", SETTINGS, logs=cluster.logs["admin"], key_id="new")


def scene_without_database(folder: Path, scene: object) -> None:
    """As `play`, but the scene creates the database."""
    with pytest.MonkeyPatch.context() as patch:

        async def nothing(*_: object, **__: object) -> None:
            return

        patch.setattr(Cluster, "create", nothing)
        play(folder, scene, nodes=0)  # type: ignore[arg-type]


def test_rows_and_snapshots_are_on_bookies_in_cipher_text_only(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await create(cluster, "n1", "n2")
        await cluster.start("n1", ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        session = await leader.session()
        await run(session, "insert into t(v) values($1)", [SECRET.decode()])
        good = await make_snapshots(cluster, leader, 2)
        found = stored(cluster.stage)
        for hidden in (SECRET, b"create table", b"SQLite format 3"):
            assert hidden not in found
        assert SECRET in file_of(cluster, "n1").read_bytes() + file_of(cluster, "n1").with_name("main.db-wal").read_bytes()
        await truncate(cluster, good[0].position)
        await cluster.start("n2", ON_REQUEST)
        second = await cluster.caught_up("n2", leader.position)
        assert await run(await second.session(), "select count(*) from t where v = $1", [SECRET.decode()]) == [(1,)]

    scene_without_database(tmp_path, scene)


def test_a_node_without_the_key_waits_for_it_and_marks_nothing_as_damaged(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await create(cluster, "n1")
        known: dict[str, bytes] = {}
        keys = cluster.keys["n2"] = KnownKeys(known)
        await cluster.start("n1", ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        good = await make_snapshots(cluster, leader, 2)
        await truncate(cluster, good[0].position)
        await cluster.start("n2", ON_REQUEST)
        replica = cluster.nodes["n2"].databases.hosted["db"].replica
        await eventually(lambda: replica._backoff.attempts > 2)
        assert cluster.database("n2").position == 0
        for wrong in ({"new": bytes(32)}, KEYS):
            keys._keys.update(wrong)
            if wrong is not KEYS:
                attempts = replica._backoff.attempts
                await eventually(lambda: replica._backoff.attempts > attempts + 2)  # noqa: B023
        await cluster.caught_up("n2", leader.position)
        listed = await (await door_of(cluster)).read()
        assert [item.state for item in listed.snapshots] == [SnapshotState.GOOD, SnapshotState.GOOD]
        await lose(cluster, "n1")
        assert await cluster.leader() is cluster.database("n2")

    scene_without_database(tmp_path, scene)


def test_a_database_is_created_only_with_a_key_that_is_there(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        client = cluster.client("admin")
        with pytest.raises(LogKeyMissing, match="key 'new'"):
            await create_database(client, "db", SETTINGS, logs=cluster.logs["admin"], key_id="new")
        await create(cluster)
        with pytest.raises(SqlError, match="already exists"):
            await create_database(client, "db", SETTINGS, logs=cluster.logs["admin"], key_id="new")

    scene_without_database(tmp_path, scene)
