"""One process on a node's directory, and one node under a name."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.sql.cluster import SETTINGS, Cluster, fill, play, run
from triplicate.errors import EnvironmentFault
from triplicate.metadata import own_paths
from triplicate.sql import database_info


def test_a_directory_belongs_to_one_process(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        twin = replace(SETTINGS, node_id="other", directory=str(tmp_path / "n1"))
        with pytest.raises(
            EnvironmentFault, match=rf"{tmp_path}/n1: another node runs on this directory \(process {os.getpid()}\): stop it"
        ):
            await cluster.start_with("twin", twin)
        await cluster.nodes.pop("n1").stop()
        node = await cluster.start_with("twin", twin)
        assert node.databases.names() == ["db"]

    play(tmp_path, scene)


def test_two_living_nodes_of_one_name_are_refused(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 3)
        twin = replace(SETTINGS, node_id="n1", directory=str(tmp_path / "elsewhere"))
        with pytest.raises(EnvironmentFault, match="a node named 'n1' runs already, at n1:5432: give each node of the cluster its own"):
            await cluster.start_with("twin", twin)
        status = await database_info(cluster.client("other"), "db")
        assert [(copy.node_id, copy.address) for copy in status.nodes] == [("n1", "n1:5432")]
        await cluster.nodes.pop("n1").stop()
        node = await cluster.start_with("twin", twin)
        assert (await cluster.leader()).is_leader
        assert node.failure is None

    play(tmp_path, scene)


def test_what_a_former_life_of_a_directory_left_is_replaced_at_once(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await fill(cluster, 3)
        # It dies without a word: its session lives on for a while.
        await cluster.kill("n1")
        status = await database_info(cluster.client("other"), "db")
        assert [copy.address for copy in status.nodes] == ["n1:5432"]
        began = cluster.stage.host.clock.monotonic()
        settings = replace(SETTINGS, node_id="n1", directory=str(tmp_path / "n1"), name_wait_s=15.0, advertised_address="again:1")
        await cluster.start_with("n1", settings)
        assert cluster.stage.host.clock.monotonic() - began < 5
        while [copy.address for copy in (await database_info(cluster.client("other"), "db")).nodes] != ["again:1"]:
            await asyncio.sleep(0.01)

    play(tmp_path, scene)


def test_a_node_takes_its_name_again_after_its_session_was_lost(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        tree = cluster.renewing_tree()
        node = await cluster.start_with("n1", replace(SETTINGS, node_id="n1", directory=str(tmp_path / "n1")), tree)
        await fill(cluster, 1)
        leader = await cluster.leader()
        session = await leader.session()
        path = own_paths.node_path(cluster.clients["n1"].metadata.own_root, "n1")
        for number in range(3):
            cluster.stage.store.expire(tree.session_id)
            await run(session, "insert into t(a) values($1)", (number,))
            while (stat := await tree.exists(path)) is None or stat.ephemeral_owner != tree.session_id:
                await asyncio.sleep(0.01)
            while not (await database_info(cluster.client("other"), "db")).nodes:
                await asyncio.sleep(0.01)
        assert node.failure is None
        assert leader.is_leader
        await cluster.nodes.pop("n1").stop()
        await tree.close()

    play(tmp_path, scene, nodes=0)
