"""Changes of placements and of nodes by operators: what is refused, and that nothing is changed then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.sql.cluster import Cluster
from tests.unit.sql.placement_rig import BY_HAND, create, play_placed
from triplicate.errors import ArgumentError, SqlError
from triplicate.metadata import own_paths
from triplicate.replica.core.placement import EVERYWHERE, Placement
from triplicate.replica.placed_nodes import (
    NodeEntry,
    decode_entry,
    encode_entry,
    ensure_node_entry,
    listed_nodes,
    placement_version,
)
from triplicate.sql import database_info
from triplicate.sql.hosting.database_directory import DatabaseInfo, decode_info, encode_info
from triplicate.sql.hosting.node_changes import remove_node
from triplicate.sql.hosting.placement_changes import alter_placement, drain_node, new_placement, set_node_weight, undrain_node

PLACED = DatabaseInfo("db", b"i" * 16, "database.db", 1, 750, placement=Placement(2, ("n1", "n2"), ("n3",), 2.5, "n2"))


def test_an_entry_with_a_placement_has_a_format_that_earlier_releases_refuse() -> None:
    data = encode_info(PLACED)
    assert decode_info(data) == PLACED
    assert b'"v":4' in data
    assert b'"v":2' in encode_info(replace(PLACED, placement=EVERYWHERE))


def test_an_entry_of_a_node_is_read_as_it_was_written() -> None:
    entry = NodeEntry("n1", 2.0, is_draining=True)
    assert encode_entry(entry) == b'{"node":"n1","state":"draining","v":1,"weight":2.0}'
    assert decode_entry(encode_entry(entry)) == entry
    guest = NodeEntry("n1", is_guest=True)
    assert encode_entry(guest) == b'{"guest":true,"node":"n1","state":"normal","v":1,"weight":1.0}'
    assert decode_entry(encode_entry(guest)) == guest


def test_a_drain_that_would_leave_too_few_copies_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        for name in ("n1", "n2"):
            await cluster.start(name, BY_HAND)
        admin = await create(cluster, "db", Placement(copies=2))
        before = await placement_version(admin)
        with pytest.raises(SqlError, match=r"without node n1, too few nodes .* db \(2 expected, 1 possible\)") as refused:
            await drain_node(admin, "n1")
        assert refused.value.sqlstate == "55000"
        assert await placement_version(admin) == before
        assert [one.state for one in await listed_nodes(admin)] == ["normal", "normal"]
        await alter_placement(admin, "db", lambda one: replace(one, copies=1))
        await drain_node(admin, "n1")
        with pytest.raises(SqlError, match="too few"):
            await drain_node(admin, "n2")
        assert [one.state for one in await listed_nodes(admin)] == ["draining", "normal"]
        await undrain_node(admin, "n1")
        assert [one.state for one in await listed_nodes(admin)] == ["normal", "normal"]

    play_placed(tmp_path, scene)


def test_placements_that_cannot_be_are_refused(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", BY_HAND)
        admin = await create(cluster, "db", Placement())
        refused = [
            (Placement(copies=2), SqlError, "only 1 nodes"),
            (Placement(readers=("n1",)), SqlError, "only 0 nodes"),
            (Placement(readers=("n9",)), SqlError, "no node 'n9'"),
            (Placement(preferred="n9"), SqlError, "no node 'n9'"),
            (Placement(copies=101), ArgumentError, "1 to 100 copies"),
            (Placement(weight=0.0), ArgumentError, "greater than 0"),
            (Placement(readers=("n1",), preferred="n1"), ArgumentError, "read-only and preferred"),
        ]
        for placement, error, text in refused:
            with pytest.raises(error, match=text):
                await alter_placement(admin, "db", lambda former, placement=placement: placement)  # type: ignore[misc]
            with pytest.raises(error, match=text):
                await new_placement(admin, "other", placement)
        assert (await database_info(admin, "db")).placement == EVERYWHERE
        with pytest.raises(SqlError, match="does not exist"):
            await alter_placement(admin, "missing", lambda former: former)

    play_placed(tmp_path, scene)


def test_a_node_keeps_its_entry_and_is_removed_only_when_it_is_gone(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", BY_HAND)
        admin = cluster.client("admin")
        await set_node_weight(admin, "n1", 3.0)
        await ensure_node_entry(admin, "n1")
        with pytest.raises(SqlError, match="node n1 runs, at n1:5432"):
            await remove_node(admin, "n1")
        await cluster.nodes.pop("n1").stop()
        assert [(one.state, one.entry.weight) for one in await listed_nodes(admin)] == [("absent", 3.0)]
        await remove_node(admin, "n1")
        assert await listed_nodes(admin) == []
        for change in (drain_node, undrain_node, remove_node):
            with pytest.raises(SqlError, match="no node 'n1'; the nodes are: none"):
                await change(admin, "n1")

    play_placed(tmp_path, scene)


def test_all_nodes_keep_their_copies_until_the_plan_chooses_among_them(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        for name in ("n1", "n2", "n3"):
            await cluster.start(name, BY_HAND)
        admin = await create(cluster, "db", Placement())
        info = await alter_placement(admin, "db", lambda one: replace(one, copies=2, readers=("n3",)))
        assert info.placement.nodes == ("n1", "n2")
        assert (await alter_placement(admin, "db", lambda one: replace(one, copies=None, readers=()))).placement == EVERYWHERE
        root = admin.metadata.own_root
        data, _ = await admin.metadata.tree.get(own_paths.database_path(root, "db"))
        assert b'"v":2' in data

    play_placed(tmp_path, scene)
