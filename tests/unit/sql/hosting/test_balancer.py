"""Nodes that carry the placement of databases out, over metadata in memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.unit.sql.cluster import Cluster, run
from tests.unit.sql.placement_rig import BALANCED, create, hosted_by, hosts, led_by, play_placed
from tests.waiting import eventually
from triplicate.metadata import Tree
from triplicate.replica import HostedCopy
from triplicate.replica.core.placement import Placement
from triplicate.replica.placed_nodes import listed_nodes, placement_version
from triplicate.runtime import Metrics
from triplicate.sql import HostedDatabase, SqlDatabase, database_info, drop_database
from triplicate.sql.hosting.balancer import Balancer
from triplicate.sql.hosting.node_changes import remove_node
from triplicate.sql.hosting.placement_changes import alter_placement, drain_node, stored_databases, undrain_node

NAMES = ("n1", "n2", "n3")


async def start_all(cluster: Cluster, *names: str) -> None:
    for name in names or NAMES:
        await cluster.start(name, BALANCED)


async def chosen(cluster: Cluster, name: str) -> set[str]:
    """The nodes that the balancer has chosen for a database, once it has."""
    admin = cluster.client("admin")
    while not (nodes := (await database_info(admin, name)).placement.nodes):
        await asyncio.sleep(0.01)
    return set(nodes)


def test_a_database_has_copies_on_the_chosen_nodes_and_on_no_other(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await start_all(cluster)
        admin = await create(cluster, "db", Placement(copies=2))
        nodes = await chosen(cluster, "db")
        assert len(nodes) == 2
        while not nodes <= await hosts(cluster, "db"):
            await asyncio.sleep(0.01)
        assert await hosts(cluster, "db") == nodes
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        (other,) = set(NAMES) - nodes
        assert not (tmp_path / other / "databases" / "db").exists()
        assert cluster.databases[other].is_partial
        await drop_database(admin, "db")
        await hosted_by(cluster, "db", set())

    play_placed(tmp_path, scene)


def test_a_drained_node_gives_its_leader_and_its_copy_to_another_without_a_gap_in_copies(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await start_all(cluster)
        admin = await create(cluster, "db", Placement(copies=2))
        before = await chosen(cluster, "db")
        leader = await led_by(admin, "db")
        await hosted_by(cluster, "db", before)
        await run(await (await cluster.leader()).session(), "create table t(a)")
        await drain_node(admin, leader)
        after = set(NAMES) - {leader}
        assert await led_by(admin, "db", besides=leader) in after
        await hosted_by(cluster, "db", after)
        while list((tmp_path / leader / "databases" / "db").iterdir()):
            await asyncio.sleep(0.01)
        session = await (await cluster.leader()).session()
        assert await run(session, "select count(*) from t") == [(0,)]
        await undrain_node(admin, leader)
        assert not (await listed_nodes(admin))[0].entry.is_draining

    play_placed(tmp_path, scene)


def test_a_database_of_all_nodes_leaves_a_node_that_drains_and_returns(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await start_all(cluster, "n1", "n2")
        admin = await create(cluster, "db", Placement())
        await hosted_by(cluster, "db", {"n1", "n2"})
        await led_by(admin, "db")
        await drain_node(admin, "n1")
        await hosted_by(cluster, "db", {"n2"})
        assert await led_by(admin, "db") == "n2"
        await undrain_node(admin, "n1")
        await hosted_by(cluster, "db", {"n1", "n2"})

    play_placed(tmp_path, scene)


def test_a_copy_that_comes_back_to_a_node_is_shown_when_it_has_caught_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of the node have seen more than the copy has that it begins with."""
    catch_up, goes_on = HostedCopy._catch_up, asyncio.Event()

    async def held(self: HostedCopy[Any, Any]) -> None:
        await goes_on.wait()
        await catch_up(self)

    monkeypatch.setattr(HostedCopy, "_catch_up", held)

    async def scene(cluster: Cluster) -> None:
        await start_all(cluster, "n1", "n2")
        admin = await create(cluster, "db", Placement())
        await hosted_by(cluster, "db", {"n1", "n2"})
        await led_by(admin, "db")
        await drain_node(admin, "n1")
        await hosted_by(cluster, "db", {"n2"})
        await undrain_node(admin, "n1")
        await hosted_by(cluster, "db", {"n1", "n2"})
        database = cast("SqlDatabase", cluster.databases["n1"].get("db"))
        hosted = cast("HostedDatabase", cluster.nodes["n1"].databases.hosted["db"])
        await hosted.opened
        assert database.unusable is not None
        assert database.unusable.sqlstate == "57P03"
        goes_on.set()
        await eventually(lambda: database.unusable is None)

    play_placed(tmp_path, scene)


def test_leaders_even_out_when_a_node_joins(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await start_all(cluster, "n1")
        names = [f"db{number}" for number in range(4)]
        for name in names:
            admin = await create(cluster, name, Placement())
            await led_by(admin, name, "n1")
        await start_all(cluster, "n2")
        while sorted([(await database_info(admin, name)).leader or "" for name in names]) != ["n1", "n1", "n2", "n2"]:
            await asyncio.sleep(0.01)

    play_placed(tmp_path, scene)


def test_copies_of_a_node_that_was_removed_are_made_on_another(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await start_all(cluster)
        admin = await create(cluster, "db", Placement(copies=2))
        before = await chosen(cluster, "db")
        await hosted_by(cluster, "db", before)
        gone = min(before)
        await cluster.nodes.pop(gone).stop()
        assert await chosen(cluster, "db") == before, "a node that is absent for a moment keeps its copies"
        await remove_node(admin, gone)
        await hosted_by(cluster, "db", set(NAMES) - {gone})

    play_placed(tmp_path, scene)


def test_the_preferred_node_leads_and_the_number_of_copies_can_be_changed(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await start_all(cluster)
        admin = await create(cluster, "db", Placement())
        for node in NAMES:
            await cluster.stands_for_election(node)
        await alter_placement(admin, "db", lambda one: replace(one, preferred="n3"))
        await led_by(admin, "db", "n3")
        await alter_placement(admin, "db", lambda one: replace(one, copies=1))
        await hosted_by(cluster, "db", {"n3"})
        await alter_placement(admin, "db", lambda one: replace(one, readers=("n1",)))
        await hosted_by(cluster, "db", {"n1", "n3"})

    play_placed(tmp_path, scene)


class InterferingTree:
    """A tree that lets an operator change the placement just before the balancer does."""

    def __init__(self, tree: Tree, interfere: Any) -> None:
        self._tree = tree
        self._interfere = interfere

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tree, name)

    async def multi(self, operations: Any) -> None:
        await self._interfere()
        await self._tree.multi(operations)


@pytest.mark.parametrize("change", ["database", "node"])
def test_a_plan_that_an_operator_has_overtaken_is_not_carried_out(tmp_path: Path, change: str) -> None:
    async def scene(cluster: Cluster) -> None:
        for name in NAMES:
            await cluster.start(name, replace(BALANCED, balance_interval_s=0))
        admin = await create(cluster, "db", Placement(copies=1))

        async def interfere() -> None:
            if change == "database":
                await alter_placement(cluster.client("operator"), "db", lambda one: replace(one, readers=("n1",)))
            else:
                await drain_node(cluster.client("operator"), "n1")

        client = cluster.client("balancer")
        client.metadata.tree = InterferingTree(client.metadata.tree, interfere)
        balancer = Balancer(cluster.stage.host, client, BALANCED)
        facts = await placement_version(admin), await listed_nodes(admin), await stored_databases(admin)
        await balancer._carry_out(*facts)
        assert (await database_info(admin, "db")).placement.nodes == (), "the plan was made for n1, which may not have it any more"

    play_placed(tmp_path, scene)


def test_one_node_is_elected_and_another_after_its_end(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        metrics: dict[str, Metrics] = {}
        for name in ("n1", "n2"):
            client = cluster.client(name)
            metrics[name] = client.metrics = Metrics()
            await cluster.start(name, BALANCED, client)

        def elected() -> list[str]:
            return [name for name in cluster.nodes if "triplicate_balancer_elected 1.0" in metrics[name].expose().decode()]

        while len(elected()) != 1:
            await asyncio.sleep(0.01)
        (first,) = elected()
        await cluster.nodes.pop(first).stop()
        while len(elected()) != 1:
            await asyncio.sleep(0.01)

    play_placed(tmp_path, scene)


def test_an_altered_placement_wakes_the_nodes(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        admin = cluster.client("admin")
        before = await placement_version(admin)
        await start_all(cluster, "n1")
        await create(cluster, "db", Placement())
        await alter_placement(admin, "db", lambda one: replace(one, weight=3.0))
        assert await placement_version(admin) > before

    play_placed(tmp_path, scene)
