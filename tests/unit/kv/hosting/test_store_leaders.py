"""Leaders of stores that are moved while their clients write, and those that leave a node that drains."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.kv.store_cluster import StoreCluster, play
from tests.waiting import eventually
from triplicate.errors import ArgumentError, NoSuchStore, NotLeading, SqlError, StoreUnavailable
from triplicate.kv import Add, StoreBatch, choose_store_leader, move_store_leader, placed_stores, session
from triplicate.metadata import own_paths
from triplicate.sql import drain_node, undrain_node

LIMIT_S = 20.0


async def followed(cluster: StoreCluster) -> str:
    """The leader's node, once every node has a copy that can be used."""
    admin = cluster.client("admin")
    while True:
        (store,) = await placed_stores(admin)
        if store.leader and store.served_on == set(cluster.nodes):
            return store.leader
        await asyncio.sleep(0.01)


async def add_always(cluster: StoreCluster, added: list[int], ended: asyncio.Event) -> None:
    """Add to one key until the end, at the leader of the moment. Any error but NotLeading is raised."""
    while not ended.is_set():
        store = await cluster.leader()
        try:
            while not ended.is_set():
                await store.execute(StoreBatch([Add(b"n", 1)]))
                added.append(1)
        except NotLeading:
            await asyncio.sleep(0.005)


def test_writers_meet_nothing_but_not_leading_while_the_leader_moves(tmp_path: Path) -> None:
    async def scene(cluster: StoreCluster) -> None:
        await followed(cluster)
        admin = cluster.client("admin")
        ended, added = asyncio.Event(), list[int]()
        writers = [asyncio.get_running_loop().create_task(add_always(cluster, added, ended)) for _ in range(4)]
        for _ in range(3):
            before = await followed(cluster)
            target = await choose_store_leader(admin, "s")
            assert target != before
            await move_store_leader(admin, "s", target, LIMIT_S)
            assert cluster.leader_name() == target
            count = len(added)
            await eventually(lambda count=count: len(added) > count + 4)  # type: ignore[misc]
        ended.set()
        for writer in writers:
            await writer
        found = await (await cluster.leader()).get(b"n")
        assert found.record is not None
        assert int(found.record.value) == len(added), "each change was made once, and answered"

    play(tmp_path, scene, nodes=3, lease_s=0.05)


def test_a_move_to_a_node_that_cannot_lead_is_refused(tmp_path: Path) -> None:
    async def scene(cluster: StoreCluster) -> None:
        leader = await followed(cluster)
        admin = cluster.client("admin")
        with pytest.raises(ArgumentError, match="the nodes are: n1, n2"):
            await choose_store_leader(admin, "s", "n9")
        (other,) = {"n1", "n2"} - {leader}
        assert await choose_store_leader(admin, "s", other) == other
        await cluster.stop(other)
        with pytest.raises(StoreUnavailable, match="no copy that can be used"):
            await choose_store_leader(admin, "s", other)
        with pytest.raises(StoreUnavailable, match="no other node"):
            await choose_store_leader(admin, "s")
        with pytest.raises(StoreUnavailable, match="withdrawn"):
            await move_store_leader(admin, "s", other, 0.1)
        handover = f"{own_paths.store_path(admin.metadata.own_root, 's')}/handover"
        assert await admin.metadata.tree.exists(handover) is None
        await admin.metadata.tree.create(handover, b"", ephemeral=True)
        with pytest.raises(StoreUnavailable, match="moved already"):
            await move_store_leader(cluster.client("second"), "s", other, 0.1)
        with pytest.raises(NoSuchStore):
            await move_store_leader(admin, "missing", other, 0.1)
        assert cluster.leader_name() == leader

    play(tmp_path, scene, nodes=2, lease_s=0.05)


def test_a_node_that_drains_gives_its_leaders_and_its_copies_of_stores_up(tmp_path: Path) -> None:
    async def scene(cluster: StoreCluster) -> None:
        leader = await followed(cluster)
        admin = cluster.client("admin")
        _, position = await (await cluster.leader()).put(b"a", b"1")
        await drain_node(admin, leader, await placed_stores(admin))
        successor = await cluster.leader(besides=leader)
        assert (await successor.get(b"a")).record is not None
        folder = cluster.folder / leader / "stores" / "s"
        await eventually(lambda: cluster.stores[leader].get("s") is None and not (folder / "CURRENT").exists())
        (other,) = set(cluster.nodes) - {leader}
        with pytest.raises(SqlError, match=r"too few nodes would be left for the copies of s \(1 expected, 0 possible\)"):
            await drain_node(admin, other, await placed_stores(admin))
        await undrain_node(admin, leader)
        returned = await cluster.caught_up(leader, position)
        assert (await returned.get_many([b"a"], session(position))).records[0] is not None

    play(tmp_path, scene, nodes=2, lease_s=0.05)
