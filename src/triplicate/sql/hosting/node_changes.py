"""Changes of the nodes of a cluster by operators."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace

from triplicate.client import Client
from triplicate.errors import ArgumentError, BadVersion, NodeExists, NoNode, SqlError
from triplicate.metadata import CreateNode, DeleteNode, SetData, TreeOperation, ensure_node, own_paths
from triplicate.replica import (
    WEIGHT_MAX,
    ListedNode,
    NodeEntry,
    encode_entry,
    listed_nodes,
    placement_change,
    placement_version,
)

ATTEMPTS = 20


def check_weight(weight: float) -> float:
    """Raises ArgumentError if it is no weight."""
    if not 0 < weight <= WEIGHT_MAX:
        raise ArgumentError(f"a weight is greater than 0, and at most {WEIGHT_MAX:g}; not {weight:g}")
    return weight


async def change_node(
    client: Client,
    name: str,
    update: Callable[[NodeEntry], NodeEntry],
    check: Callable[[Sequence[ListedNode]], Awaitable[None]] | None = None,
) -> NodeEntry:
    """Change the entry of a node. Nothing that `check` has seen of entries has changed when the change is made.

    Args:
        check: called with the nodes as they would be; it raises an error where the change must not be made.

    Raises:
        SqlError: 42704, no such node; 40001, others change the placement all the time.
    """
    tree, root = client.metadata.tree, client.metadata.own_root
    path = own_paths.placed_node_path(root, name)
    for _ in range(ATTEMPTS):
        version = await placement_version(client)
        nodes = await listed_nodes(client)
        found = next((one for one in nodes if one.name == name), None)
        if found is None:
            raise no_such_node(name, nodes)
        entry = update(found.entry)
        changed = [replace(one, entry=entry) if one.name == name else one for one in nodes]
        if check is not None:
            await check(changed)
        data = encode_entry(entry)
        stat = await tree.exists(path)
        own: TreeOperation = CreateNode(path, data) if stat is None else SetData(path, data, stat.version)
        try:
            if stat is None:
                await ensure_node(tree, own_paths.placed_nodes_path(root))
            await tree.multi([placement_change(client, version), own])
        except (BadVersion, NodeExists, NoNode):
            continue
        return entry
    raise busy_placement()


async def remove_node(client: Client, name: str) -> None:
    """Delete the entry of a node that does not run any more. Other nodes are chosen for its copies.

    Raises:
        SqlError: 42704, no such node; 55006, it runs; 40001, others change the placement all the time.
    """
    tree, path = client.metadata.tree, own_paths.placed_node_path(client.metadata.own_root, name)
    for _ in range(ATTEMPTS):
        version = await placement_version(client)
        nodes = await listed_nodes(client)
        found = next((one for one in nodes if one.name == name), None)
        if found is None:
            raise no_such_node(name, nodes)
        if found.is_running:
            hint = f"Drain it with triplicate node drain {name} --wait, and stop it."
            raise SqlError("55006", f"node {name} runs, at {found.address}", hint=hint)
        try:
            await tree.multi([placement_change(client, version), DeleteNode(path)])
        except (BadVersion, NoNode):
            continue
        return
    raise busy_placement()


def no_such_node(name: str, nodes: Collection[ListedNode]) -> SqlError:
    known = ", ".join(one.name for one in nodes) or "none"
    return SqlError("42704", f"there is no node {name!r}; the nodes are: {known}", hint="triplicate node list shows them.")


def busy_placement() -> SqlError:
    return SqlError("40001", "the placement of databases was changed at the same time; try again")
