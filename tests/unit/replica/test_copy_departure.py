"""Copies that a node is to give up: when they go, and when they stay."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sql.cluster import Cluster, run
from tests.unit.sql.placement_rig import BY_HAND, create, hosted_by, led_by, play_placed
from tests.waiting import eventually
from triplicate.replica import HostedCopy, copy_departure, hosting_loop
from triplicate.replica.copy_departure import CopyDepartures
from triplicate.replica.core.placement import Placement
from triplicate.sql.hosting.leader_moves import move_leader
from triplicate.sql.hosting.placement_changes import alter_placement, drain_node

LOOKS = 5


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The looks at copies that are to be given up, by the name of the database. Nodes look often."""
    seen: list[str] = []
    may_leave = CopyDepartures.may_leave

    async def counted(self: CopyDepartures[Any, Any], hosted: HostedCopy[Any, Any]) -> bool:
        found = await may_leave(self, hosted)
        seen.append(hosted.info.name)
        return found

    monkeypatch.setattr(hosting_loop, "DEPARTURE_CHECK_S", 0.02)
    monkeypatch.setattr(copy_departure.CopyDepartures, "may_leave", counted)
    return seen


async def looked(looks: list[str], name: str) -> None:
    """Wait until nodes have looked several times more."""
    before = looks.count(name)
    while looks.count(name) < before + LOOKS:
        await asyncio.sleep(0.01)


def test_a_copy_stays_until_the_one_that_replaces_it_has_caught_up(tmp_path: Path, looks: list[str]) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", BY_HAND)
        admin = await create(cluster, "db", Placement(1, ("n1",)))
        await led_by(admin, "db", "n1")
        session = await (await cluster.leader()).session()
        await run(session, "create table t(a)")
        await alter_placement(admin, "db", lambda one: replace(one, nodes=("n2",)))
        await looked(looks, "db")
        await run(session, "insert into t values(1)")
        await cluster.start("n2", BY_HAND)
        await cluster.stands_for_election("n2")
        await looked(looks, "db")
        assert cluster.databases["n1"].get("db") is not None, "the leader's copy stays"
        await move_leader(admin, "db", "n2", 20.0)
        await hosted_by(cluster, "db", {"n2"})
        await eventually(lambda: not list((tmp_path / "n1" / "databases" / "db").iterdir()))
        again = await (await cluster.leader()).session()
        assert await run(again, "select a from t") == [(1,)]

    play_placed(tmp_path, scene)


def test_a_follower_that_is_not_chosen_waits_for_the_chosen_one(tmp_path: Path, looks: list[str]) -> None:
    async def scene(cluster: Cluster) -> None:
        for name in ("n1", "n2"):
            await cluster.start(name, BY_HAND)
        admin = await create(cluster, "db", Placement(2, ("n1", "n2")))
        leader = await led_by(admin, "db")
        await hosted_by(cluster, "db", {"n1", "n2"})
        (follower,) = {"n1", "n2"} - {leader}
        await alter_placement(admin, "db", lambda one: replace(one, nodes=tuple(sorted((leader, "n3")))))
        await looked(looks, "db")
        assert cluster.databases[follower].get("db") is not None, "n3 does not run, and so its copy does not follow"
        await cluster.start("n3", BY_HAND)
        await hosted_by(cluster, "db", {leader, "n3"})

    play_placed(tmp_path, scene)


def test_a_copy_that_is_not_chosen_is_kept_through_a_restart_of_its_node(tmp_path: Path, looks: list[str]) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", BY_HAND)
        admin = await create(cluster, "db", Placement(1, ("n1",)))
        await led_by(admin, "db", "n1")
        await cluster.nodes.pop("n1").stop()
        await cluster.start("n2", BY_HAND)
        await alter_placement(admin, "db", lambda one: replace(one, nodes=("n3",)))
        await cluster.start("n1", BY_HAND)
        assert cluster.databases["n1"].get("db") is not None
        assert cluster.databases["n2"].get("db") is None
        await looked(looks, "db")
        assert cluster.databases["n1"].get("db") is not None

    play_placed(tmp_path, scene)


def test_a_chosen_copy_is_never_given_up_by_a_drain_alone(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        for name in ("n1", "n2", "n3"):
            await cluster.start(name, BY_HAND)
        admin = await create(cluster, "db", Placement(2, ("n1", "n2")))
        await hosted_by(cluster, "db", {"n1", "n2"})
        await drain_node(admin, "n1")
        hosted = cluster.databases["n1"].hosted["db"]
        assert not hosted.is_leaving, "nobody was chosen in its place yet"

    play_placed(tmp_path, scene)
