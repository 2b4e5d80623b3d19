"""Waiting for the leader of a database."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.sql.cluster import Cluster, play
from triplicate.metadata import own_paths
from triplicate.replica import Candidate
from triplicate.sql import DatabaseInfo, wait_for_leader

LONG_S = 600.0


@pytest.mark.parametrize(
    ("leader", "role", "is_led"),
    [
        ("n1", "leader", True),
        ("n1", "", True),
        ("n1", "candidate", False),
        ("n1", "follower", False),
        (None, "leader", False),
        ("n2", "leader", False),
    ],
)
def test_a_database_is_led_when_its_leader_has_reported_the_end_of_its_take_over(leader: str | None, role: str, is_led: bool) -> None:
    nodes = (Candidate("n1", "n1:1", 7, role), Candidate("n2", "n2:1", 7, "follower"))
    assert DatabaseInfo("db", b"", "log", 0, leader=leader, nodes=nodes).is_led is is_led


def test_the_wait_for_a_leader_ends_with_its_take_over(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        client = cluster.client("looker")
        await cluster.create("other")
        for name in ("db", "other"):
            info = await wait_for_leader(client, name, LONG_S)
            assert (info.leader, info.is_led) == ("n1", True)
            assert cluster.database("n1", name).is_leader

    play(tmp_path, scene, nodes=1)


def test_without_a_running_node_nothing_is_waited_for(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        assert not (await wait_for_leader(cluster.client("looker"), "db", LONG_S)).is_led

    play(tmp_path, scene, nodes=0)


def test_the_wait_for_a_leader_has_a_limit(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        client = cluster.client("looker")
        await client.metadata.tree.create(own_paths.node_path(client.metadata.own_root, "n9"), parents=True, ephemeral=True)
        info = await asyncio.wait_for(wait_for_leader(client, "db", 0.15), 30)
        assert info.nodes == ()

    play(tmp_path, scene, nodes=0)
