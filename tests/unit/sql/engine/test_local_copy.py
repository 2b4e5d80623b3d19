"""Copies that are behind, given up or damaged, where the log does not reach back any more: they load a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.unit.sql.cluster import Cluster, affected, play, run
from tests.unit.sql.snapshot_rig import (
    ON_REQUEST,
    copied_contents,
    door_of,
    file_of,
    filled,
    keeper_of,
    make_snapshots,
    truncate,
    write_rows,
)
from tests.waiting import eventually
from triplicate.errors import EnvironmentFault
from triplicate.metadata import own_paths
from triplicate.replica import STANDS_AT
from triplicate.sql import SqlDatabase
from triplicate.sql.engine.local_copy import LocalCopy


async def truncated_cluster(cluster: Cluster) -> tuple[SqlDatabase, str]:
    """A leader and a follower that stopped early; the log begins beyond its position now. Returns the leader and the follower's name."""
    for node in ("n1", "n2"):
        await cluster.start(node, ON_REQUEST)
    leader = await cluster.leader()
    await filled(cluster)
    name = cluster.leader_name()
    other = "n2" if name == "n1" else "n1"
    await cluster.caught_up(other, leader.position)
    await cluster.nodes.pop(other).stop()
    good = await make_snapshots(cluster, leader, 2)
    await truncate(cluster, good[0].position)
    return leader, other


def test_a_copy_applies_a_change_of_tables_beside_a_view_over_a_view(tmp_path: Path) -> None:
    """ALTER TABLE resolves the columns of all views, which call functions."""

    async def scene(cluster: Cluster) -> None:
        for node in ("n1", "n2"):
            await cluster.start(node, ON_REQUEST)
        leader = await cluster.leader()
        session = await leader.session()
        for statement in (
            "create table m(id integer primary key autoincrement, n numeric)",
            "create view v as select triplicate_numeric_divide(n, 3) as q from m",
            "create view w as select q from v",
            "alter table m rename to moved",
        ):
            await affected(session, statement)
        other = "n2" if cluster.leader_name() == "n1" else "n1"
        await cluster.caught_up(other, leader.position)
        assert copied_contents(file_of(cluster, other), tmp_path) == copied_contents(file_of(cluster, cluster.leader_name()), tmp_path)

    play(tmp_path, scene, nodes=0)


@pytest.mark.parametrize("reason", [f"{STANDS_AT} 3, where the log cannot be read", "a row was changed that is not there"])
def test_a_copy_that_was_given_up_before_is_built_from_a_snapshot(tmp_path: Path, reason: str) -> None:
    async def scene(cluster: Cluster) -> None:
        leader, other = await truncated_cluster(cluster)
        connection = apsw.Connection(str(file_of(cluster, other)))
        connection.execute("update triplicate_state set diverged = ?", (reason,))
        connection.close()
        await cluster.start(other, ON_REQUEST)
        copy = await cluster.serving(other, leader.position)
        assert copied_contents(file_of(cluster, other), tmp_path) == copied_contents(file_of(cluster, cluster.leader_name()), tmp_path)
        session = await copy.session()
        assert await run(session, "select count(*) from t") == [(2,)]

    play(tmp_path, scene, nodes=0)


def test_a_damaged_file_is_set_aside_and_built_from_a_snapshot(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        leader, other = await truncated_cluster(cluster)
        path = file_of(cluster, other)
        path.write_bytes(b"no database at all" + path.read_bytes()[18:])
        await cluster.start(other, ON_REQUEST)
        await cluster.serving(other, leader.position)
        assert copied_contents(path, tmp_path) == copied_contents(file_of(cluster, cluster.leader_name()), tmp_path)

    play(tmp_path, scene, nodes=0)


def test_a_copy_that_falls_behind_a_truncation_while_it_runs_loads_a_snapshot(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        for node in ("n1", "n2"):
            await cluster.start(node, ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        name = cluster.leader_name()
        other = "n2" if name == "n1" else "n1"
        follower = await cluster.caught_up(other, leader.position)
        apply, stuck = follower.apply, True

        async def held(entries: Any) -> int:
            if stuck:
                raise EnvironmentFault("the disk is full")
            return await apply(entries)

        follower.apply = held  # type: ignore[method-assign]
        # The leader makes snapshots here, since its peer falls behind.
        keeper = keeper_of(cluster, name)
        await write_rows(leader, 1)
        await keeper._attempt("for the test")
        await write_rows(leader, 1)
        await keeper._attempt("for the test")
        good = (await (await door_of(cluster)).read()).good
        await truncate(cluster, good[0].position)
        # Until then it could apply what it had read before the truncation, and would need no snapshot.
        await eventually(lambda: keeper_of(cluster, other).loaded != 0)
        stuck = False
        assert (await cluster.serving(other, leader.position)).generation == 2
        assert copied_contents(file_of(cluster, other), tmp_path) == copied_contents(file_of(cluster, name), tmp_path)

    play(tmp_path, scene, nodes=0)


def test_a_follower_that_was_away_while_the_log_was_truncated_loads_a_snapshot_and_can_lead(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        for node in ("n1", "n2"):
            await cluster.start(node, ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        name = cluster.leader_name()
        other = "n2" if name == "n1" else "n1"
        await cluster.caught_up(other, leader.position)
        await cluster.nodes.pop(other).stop()
        good = await make_snapshots(cluster, leader, 2)
        await truncate(cluster, good[1].position)
        await write_rows(leader, 2)
        position, before = leader.position, copied_contents(file_of(cluster, name), tmp_path)
        await cluster.start(other, ON_REQUEST)
        await cluster.caught_up(other, position)
        assert copied_contents(file_of(cluster, other), tmp_path) == before
        await cluster.nodes.pop(name).stop()
        again = await cluster.leader()
        session = await again.session()
        assert await affected(session, "insert into t(v) values('new')") == 1
        assert await run(session, "select max(id) = count(*) from t") == [(1,)]

    play(tmp_path, scene, nodes=0)


def test_a_copy_that_could_not_be_opened_after_it_was_replaced_is_served_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = 0
    open_copy = LocalCopy.open

    def opens_not_at_once(self: LocalCopy) -> Any:
        nonlocal opened
        opened += "/n2/" in self.path
        if opened == 2:
            raise EnvironmentFault("too many open files")
        return open_copy(self)

    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        session = await leader.session()
        await run(session, "insert into t(v) values('')")
        for _ in range(60):
            await run(session, "update t set v = hex(randomblob(30000))")
        await make_snapshots(cluster, leader, 1)
        monkeypatch.setattr(LocalCopy, "open", opens_not_at_once)
        await cluster.start("n2", ON_REQUEST)
        copy = await cluster.serving("n2", leader.position)
        assert await run(await copy.session(), "select count(*) from t") == [(2,)]
        assert opened > 1

    play(tmp_path, scene, nodes=0)


def test_a_list_of_snapshots_that_cannot_be_read_keeps_no_node_from_following_a_whole_log(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", ON_REQUEST)
        leader = await cluster.leader()
        await filled(cluster)
        client = cluster.client("newer")
        path = own_paths.snapshots_path(client.metadata.own_root, (await door_of(cluster)).name)
        later = b'{"snapshots":[],"v":99,"wanted":null}'
        if await client.metadata.tree.exists(path) is None:
            await client.metadata.tree.create(path, later)
        else:
            await client.metadata.tree.set(path, later)
        await cluster.start("n2", ON_REQUEST)
        await cluster.serving("n2", leader.position)

    play(tmp_path, scene, nodes=0)
