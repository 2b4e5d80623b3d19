"""Nodes host every store of the cluster, keep equal copies, replace each other, and start again from their local state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.kv.store_cluster import StoreCluster, play
from tests.unit.sql.cluster import SETTINGS as NODE_SETTINGS
from tests.waiting import eventually
from triplicate.errors import LevelNotMet, LogReserved, NoSuchLog, NoSuchStore, NotLeading, PlaceLost, StoreExists
from triplicate.kv import (
    ALL_KEYS,
    ANY,
    Expiry,
    Put,
    ReplicatedStore,
    StoreBatch,
    bounded,
    create_store,
    drop_store,
    session,
    store_info,
    store_names,
)
from triplicate.log import Logs

SNAPSHOTS = replace(NODE_SETTINGS, snapshot_log_bytes=2000, snapshot_interval_s=0.0, snapshot_turn_s=0.0)


def contents(store: ReplicatedStore) -> object:
    moment = store.copied.moment()
    return moment.state._replace(epoch=0), list(moment.items)


def test_followers_have_the_leaders_content_and_one_of_them_replaces_it(tmp_path: Path) -> None:
    async def scene(cluster: StoreCluster) -> None:
        leader = await cluster.leader()
        first = cluster.leader_name()
        for number in range(30):
            await leader.put(b"k%d" % (number % 7), b"%d" % number, expiry=Expiry(after_ms=3_600_000 if number % 2 else None))
        _, position = await leader.delete(b"k1", b"absent")
        for node in cluster.nodes:
            store = await cluster.caught_up(node, position)
            assert contents(store) == contents(leader)
            found = await store.get(b"k2", session(position))
            assert found.record is not None
            if node != first:
                with pytest.raises(NotLeading) as error:
                    await store.get(b"k2")
                assert error.value.leader == f"{first}:5432"
                assert store.leader_node == first
                with pytest.raises(LevelNotMet, match="behind the position"):
                    await store.get(b"k2", session(position + 1, wait_s=0.01))
                assert (await store.get(b"k2", bounded(5.0))).record == found.record
                with pytest.raises(LevelNotMet, match="s old"):
                    await store.get(b"k2", bounded(0.0, wait_s=0.01))
        await cluster.kill(first)
        successor = await cluster.leader()
        assert contents(successor) == contents(cluster.store(cluster.leader_name()))
        _, position = await successor.put(b"new", b"1")
        await cluster.start(first)
        returned = await cluster.caught_up(first, position)
        assert contents(returned) == contents(successor)

    play(tmp_path, scene, nodes=3, lease_s=0.05)


def test_a_node_starts_again_from_its_local_state(tmp_path: Path) -> None:
    async def scene(cluster: StoreCluster) -> None:
        leader = await cluster.leader()
        _, position = await leader.put(b"a", b"1")
        before = contents(leader)
        await cluster.stop("n1")
        await cluster.start("n1")
        store = await cluster.caught_up("n1", position)
        hosted = cluster.stores["n1"].hosted["s"]
        assert hosted.replica.start_position == position
        assert contents(store) == before
        assert (await (await cluster.leader()).put(b"a", b"2", returns_old=True))[0].value == b"1"

    play(tmp_path, scene)


def test_a_new_node_loads_a_snapshot_where_the_log_is_truncated(tmp_path: Path) -> None:
    async def scene(cluster: StoreCluster) -> None:
        await cluster.start("n1", SNAPSHOTS)
        leader = await cluster.leader()
        admin = cluster.client("admin")
        info = await store_info(admin, "s")
        position = 0
        for number in range(120):
            _, position = await leader.put(b"k%03d" % number, b"v" * 100, expiry=Expiry(after_ms=3_600_000))
            if number % 20 == 0:
                await leader.delete(b"k%03d" % number)
        logs = cluster.logs["admin"]
        await eventually(lambda: bool(cluster.stage.host))
        while (await logs.head(info.log)).first_offset == 0:
            _, position = await leader.put(b"more", b"v" * 500)
        await cluster.start("n2", SNAPSHOTS)
        follower = await cluster.caught_up("n2", position)
        assert contents(follower) == contents(leader)
        assert cluster.stores["n2"].hosted["s"].replica.start_position == 0

    async def without_nodes(cluster: StoreCluster) -> None:
        await scene(cluster)

    play(tmp_path, without_nodes, nodes=0)


def test_a_damaged_copy_is_set_aside_and_built_again(tmp_path: Path) -> None:
    async def scene(cluster: StoreCluster) -> None:
        leader = await cluster.leader()
        _, position = await leader.put(b"a", b"1")
        follower = next(name for name in cluster.nodes if name != cluster.leader_name())
        await cluster.caught_up(follower, position)
        await cluster.stop(follower)
        folder = cluster.folder / follower / "stores" / "s"
        (folder / "CURRENT").write_bytes(b"MANIFEST-999999\n")
        for manifest in folder.glob("MANIFEST-*"):
            manifest.unlink()
        await cluster.start(follower)
        store = await cluster.caught_up(follower, position)
        assert contents(store) == contents(leader)

    play(tmp_path, scene, nodes=2)


def test_watchers_see_each_change_once_in_order_on_any_node(tmp_path: Path) -> None:
    async def scene(cluster: StoreCluster) -> None:
        leader = await cluster.leader()
        other = next(name for name in cluster.nodes if name != cluster.leader_name())
        follower = cluster.store(other)
        page = await leader.scan(ALL_KEYS)
        watches = [await store.watch(b"w", page.position) for store in (leader, follower)]
        for number in range(40):
            await leader.execute(StoreBatch([Put(b"w%d" % number, b"1"), Put(b"x%d" % number, b"1"), Put(b"w", b"%d" % number)]))
        for watch in watches:
            seen: list[tuple[int, bytes]] = []
            async with watch:
                async for changes in watch:
                    seen += [(change.position, change.key) for change in changes]
                    if len(seen) == 80:
                        break
            assert seen == [(number + 1 + page.position, key) for number in range(40) for key in (b"w%d" % number, b"w")]
        await cluster.stop(other)
        await cluster.start(other)
        restarted = await cluster.caught_up(other, leader.position)
        with pytest.raises(PlaceLost) as lost:
            await restarted.watch(b"", 0)
        assert lost.value.oldest > 0

    play(tmp_path, scene, nodes=2)


def test_a_store_that_is_dropped_goes_with_its_log_and_copies(tmp_path: Path) -> None:
    async def scene(cluster: StoreCluster) -> None:
        leader = await cluster.leader()
        await leader.put(b"a", b"1")
        admin = cluster.client("admin")
        info = await store_info(admin, "s")
        with pytest.raises(StoreExists):
            await create_store(admin, "s")
        with pytest.raises(LogReserved, match="triplicate kv drop s"):
            await cluster.logs["admin"].delete(info.log)
        await drop_store(admin, "s", cluster.logs["admin"])
        assert await store_names(admin) == []
        with pytest.raises(NoSuchLog):
            await Logs(admin).head(info.log)
        with pytest.raises(NoSuchStore):
            await drop_store(admin, "s")
        await eventually(lambda: not any(stores.names() for stores in cluster.stores.values()))
        await eventually(lambda: not any((cluster.folder / node / "stores" / "s" / "CURRENT").exists() for node in cluster.nodes))
        await cluster.create()
        again = await cluster.leader()
        assert (await again.get(b"a")).record is None
        assert (await again.get(b"a", ANY)).record is None

    play(tmp_path, scene, nodes=2)
