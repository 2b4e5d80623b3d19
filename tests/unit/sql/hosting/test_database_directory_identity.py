"""A database that was dropped and created again under its name is another one: what began on the first does nothing to the second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.replica.hanging_tree import Hold, touches
from tests.unit.sql.cluster import Cluster
from tests.unit.sql.placement_rig import ALONE, BY_HAND, create, play_placed
from triplicate.client import Client
from triplicate.errors import SqlError, TriplicateError
from triplicate.log import Logs
from triplicate.metadata import DeleteNode, own_paths
from triplicate.replica import EVERYWHERE, Placement, listed_nodes, placement_version
from triplicate.sql import (
    Administrator,
    alter_placement,
    create_database,
    drop_database,
    dropped_databases,
    rename_database,
    set_administrator,
    undelete_database,
)
from triplicate.sql.hosting.balancer import Balancer
from triplicate.sql.hosting.database_directory import read_info
from triplicate.sql.hosting.dropping import purge_dropped, replace_database
from triplicate.sql.hosting.placement_changes import stored_databases

ROOT = "/triplicate/test"
ENTRY = f"{ROOT}/databases/db"


def nodes(cluster: Cluster) -> dict[str, tuple[bytes, int]]:
    """All that is stored of databases, without the signs of processes."""
    places = f"{ROOT}/databases", f"{ROOT}/drop"
    found = cluster.stage.store.dump().items()
    return {path: (data, stat.version) for path, (data, stat) in found if path.startswith(places) and not stat.ephemeral_owner}


def entry(cluster: Cluster) -> tuple[bytes, int]:
    return nodes(cluster)[ENTRY]


async def changed_to(cluster: Cluster, user: Client, version: int) -> None:
    """Change the database until its entry has a version."""
    while entry(cluster)[1] < version:
        await set_administrator(user, "db", Administrator.of_password(user, f"user{entry(cluster)[1]}", "secret"))


async def administrate(client: Client, cluster: Cluster) -> None:
    await set_administrator(client, "db", Administrator.of_password(client, "late", "secret"))


async def alter(client: Client, cluster: Cluster) -> None:
    await alter_placement(client, "db", lambda one: replace(one, weight=7.0))


async def balance(client: Client, cluster: Cluster) -> None:
    facts = await placement_version(client), await listed_nodes(client), await stored_databases(client)
    await Balancer(cluster.stage.host, client, BY_HAND)._carry_out(*facts)


async def drop(client: Client, cluster: Cluster) -> None:
    await drop_database(client, "db")


async def replace_it(client: Client, cluster: Cluster) -> None:
    found = await read_info(client, "db")
    await replace_database(client, replace(found, identity=bytes(16), log="database.db.restored"), found.identity)


async def rename(client: Client, cluster: Cluster) -> None:
    await rename_database(client, "db", "other")


OPERATIONS: list[Callable[[Client, Cluster], Awaitable[None]]] = [administrate, alter, balance, drop, replace_it, rename]


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "of an earlier release"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=[call.__name__ for call in OPERATIONS])
def test_a_late_change_does_nothing_to_the_next_database(
    tmp_path: Path, operation: Callable[[Client, Cluster], Awaitable[None]], marked: bool
) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", BY_HAND)
        user = await create(cluster, "db", Placement(copies=1))
        await changed_to(cluster, user, 2)
        if not marked:
            await unmark(user)
        late = cluster.client("late")
        hold = Hold(late.metadata.tree, touches(ENTRY))
        task = asyncio.ensure_future(operation(late, cluster))
        await asyncio.wait_for(hold.reached.wait(), 5)
        await drop_database(user, "db")
        await purge_dropped(user, cluster.logs["admin"], 0.0)
        await create_database(user, "db", ALONE, lease_s=0, placement=Placement(copies=1))
        await changed_to(cluster, user, 2)
        before = nodes(cluster)
        hold.go_on.set()
        (result,) = await asyncio.gather(task, return_exceptions=True)
        assert nodes(cluster) == before
        assert result is None or (isinstance(result, SqlError) and result.sqlstate == "3D000"), result

    play_placed(tmp_path, scene)


async def unmark(client: Client) -> None:
    """Make the entry one of an earlier release."""
    tree, folder = client.metadata.tree, own_paths.identities_path(ENTRY)
    names, _ = await tree.children(folder)
    await tree.multi([*(DeleteNode(f"{folder}/{name}") for name in names), DeleteNode(folder)])


async def rename_and_back(user: Client) -> None:
    await rename_database(user, "db", "other")
    await set_administrator(user, "other", Administrator.of_password(user, "chosen", "secret"))
    await rename_database(user, "other", "db")


async def drop_and_undelete(user: Client) -> None:
    await set_administrator(user, "db", Administrator.of_password(user, "chosen", "secret"))
    await drop_database(user, "db")
    await undelete_database(user, "db")


@pytest.mark.parametrize("detour", [rename_and_back, drop_and_undelete])
@pytest.mark.parametrize("operation", [alter, rename, drop])
def test_a_late_change_undoes_nothing_of_a_database_that_was_away_meanwhile(
    tmp_path: Path,
    operation: Callable[[Client, Cluster], Awaitable[None]],
    detour: Callable[[Client], Awaitable[None]],
) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.start("n1", BY_HAND)
        user, late = await create(cluster, "db", EVERYWHERE), cluster.client("late")
        identity = (await read_info(user, "db")).identity
        hold = Hold(late.metadata.tree, touches(ENTRY))
        task = asyncio.ensure_future(operation(late, cluster))
        await asyncio.wait_for(hold.reached.wait(), 5)
        await detour(user)
        assert entry(cluster)[1] == 0
        hold.go_on.set()
        await task
        infos = [await read_info(user, name) for name in ("db", "other") if f"{ROOT}/databases/{name}" in nodes(cluster)]
        infos += [one.info for one in await dropped_databases(user)]
        assert [(one.identity, one.administrator and one.administrator.name) for one in infos] == [(identity, "chosen")]

    play_placed(tmp_path, scene)


async def undelete(client: Client, logs: Logs) -> None:
    await undelete_database(client, "db")


async def purge(client: Client, logs: Logs) -> None:
    await purge_dropped(client, logs, 0.0)


@pytest.mark.parametrize("operation", [undelete, purge])
def test_a_late_end_of_a_drop_does_nothing_to_the_next_drop(tmp_path: Path, operation: Callable[[Client, Logs], Awaitable[None]]) -> None:
    async def scene(cluster: Cluster) -> None:
        user, late = await create(cluster, "db", EVERYWHERE), cluster.client("late")
        tombstone = own_paths.dropped_database_path(ROOT, (await read_info(user, "db")).identity)
        await drop_database(user, "db")
        hold = Hold(late.metadata.tree, touches(tombstone))
        task = asyncio.ensure_future(operation(late, cluster.logs["late"]))
        await asyncio.wait_for(hold.reached.wait(), 5)
        await undelete_database(user, "db")
        await set_administrator(user, "db", Administrator.of_password(user, "chosen", "secret"))
        await drop_database(user, "db")
        hold.go_on.set()
        (result,) = await asyncio.gather(task, return_exceptions=True)
        assert result is None or isinstance(result, TriplicateError), result
        found = [one.info for one in await dropped_databases(user)] or [await read_info(user, "db")]
        assert [one.administrator and one.administrator.name for one in found] == ["chosen"]
        await cluster.logs["admin"].head(found[0].log)

    play_placed(tmp_path, scene)


def test_nothing_is_left_of_databases_that_are_gone(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        user = await create(cluster, "db", EVERYWHERE)
        await rename_database(user, "db", "other")
        await drop_database(user, "other")
        await undelete_database(user, "other")
        await drop_database(user, "other")
        await purge_dropped(user, cluster.logs["admin"], 0.0)
        assert set(nodes(cluster)) == {f"{ROOT}/databases", f"{ROOT}/dropped", f"{ROOT}/drops"}

    play_placed(tmp_path, scene)
