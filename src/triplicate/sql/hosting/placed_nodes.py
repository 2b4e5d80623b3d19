"""The nodes of a cluster as its placement sees them: their weights and states, and the changes of these by operators.

A node's entry is ``/triplicate/<INSTANCEID>/placed-nodes/<node id>``: JSON with ``v`` (1), ``node``, ``weight`` and ``state`` (``normal``
or ``draining``). Each node writes its own at its first start, and it stays when the node stops. Every change also changes
``/triplicate/<INSTANCEID>/placement``, in the same transaction. Nodes watch that one, and changes that depend on others check its version.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace

from triplicate.client import Client
from triplicate.errors import ArgumentError, BadVersion, FormatError, NodeExists, NoNode, SqlError
from triplicate.metadata import CreateNode, DeleteNode, SetData, Tree, TreeOperation, own_paths
from triplicate.sql.core.placement import WEIGHT_MAX, PlacedNode
from triplicate.sql.hosting.database_directory import registered_nodes

FORMAT = 1
NORMAL = "normal"
DRAINING = "draining"
ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """The entry of one node."""

    name: str
    weight: float = 1.0
    """The share of the load that it takes beside other nodes."""
    is_draining: bool = False


@dataclass(frozen=True, slots=True)
class ListedNode:
    """One node with its address."""

    entry: NodeEntry
    address: str = ""
    """host:port for clients; empty if it does not run."""
    knows_placement: bool = True

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def is_running(self) -> bool:
        return bool(self.address)

    @property
    def state(self) -> str:
        """normal, draining, or absent."""
        return DRAINING if self.entry.is_draining else NORMAL if self.is_running else "absent"

    def placed(self, *, is_gone: bool = False) -> PlacedNode:
        entry = self.entry
        return PlacedNode(entry.name, entry.weight, entry.is_draining, self.is_running and self.knows_placement, is_gone)


def check_weight(weight: float) -> float:
    """Raises ArgumentError if it is no weight."""
    if not 0 < weight <= WEIGHT_MAX:
        raise ArgumentError(f"a weight is greater than 0, and at most {WEIGHT_MAX:g}; not {weight:g}")
    return weight


def encode_entry(entry: NodeEntry) -> bytes:
    state = DRAINING if entry.is_draining else NORMAL
    fields = {"v": FORMAT, "node": entry.name, "weight": entry.weight, "state": state}
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode_entry(data: bytes) -> NodeEntry:
    """Raises FormatError."""
    try:
        fields = json.loads(data)
        if fields["v"] != FORMAT:
            raise ValueError(f"version {fields['v']}; this release knows {FORMAT}")
        if fields["state"] not in (NORMAL, DRAINING):
            raise ValueError(f"state {fields['state']!r}")
        return NodeEntry(str(fields["node"]), float(fields["weight"]), fields["state"] == DRAINING)
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"the entry of a node cannot be read: {error}") from error


async def placement_version(client: Client) -> int:
    """The version of the placement, which grows with each change. Read it before the facts on which a change depends."""
    tree, path = client.metadata.tree, own_paths.placement_path(client.metadata.own_root)
    while True:
        stat = await tree.exists(path)
        if stat is not None:
            return stat.version
        try:
            await tree.create(path, parents=True)
        except NodeExists:
            continue


def placement_change(client: Client, version: int) -> SetData:
    """The operation that a change of the placement has in its transaction. With a version, it fails if there was another change since."""
    return SetData(own_paths.placement_path(client.metadata.own_root), b"", version)


async def ensure_node_entry(client: Client, name: str) -> None:
    """Write the entry of a node unless it has one."""
    tree, path = client.metadata.tree, own_paths.placed_node_path(client.metadata.own_root, name)
    if await tree.exists(path) is not None:
        return
    version = await placement_version(client)
    await _ensure(tree, own_paths.placed_nodes_path(client.metadata.own_root))
    try:
        await tree.multi([placement_change(client, version), CreateNode(path, encode_entry(NodeEntry(name)))])
    except (NodeExists, BadVersion):
        await ensure_node_entry(client, name)


async def node_entry(client: Client, name: str) -> NodeEntry:
    """The entry of a node; the default one if it has none.

    Raises:
        FormatError: it was written by a later release.
    """
    try:
        data, _ = await client.metadata.tree.get(own_paths.placed_node_path(client.metadata.own_root, name))
    except NoNode:
        return NodeEntry(name)
    return decode_entry(data)


async def listed_nodes(client: Client) -> list[ListedNode]:
    """All nodes that run or have an entry, by name.

    Raises:
        FormatError: an entry was written by a later release.
    """
    tree, folder = client.metadata.tree, own_paths.placed_nodes_path(client.metadata.own_root)
    try:
        names, _ = await tree.children(folder)
    except NoNode:
        names = []
    found = {name: ListedNode(await node_entry(client, name)) for name in map(own_paths.decode_name, names)}
    for one in await registered_nodes(client):
        entry = found[one.node_id].entry if one.node_id in found else NodeEntry(one.node_id)
        found[one.node_id] = ListedNode(entry, one.address or "unknown", one.knows_placement)
    return [found[name] for name in sorted(found)]


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
                await _ensure(tree, own_paths.placed_nodes_path(root))
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


async def _ensure(tree: Tree, path: str) -> None:
    try:
        await tree.create(path, parents=True)
    except NodeExists:
        return
