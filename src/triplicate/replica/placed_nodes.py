"""The nodes of a cluster as its placement sees them: their weights and states.

A node's entry is ``/triplicate/<INSTANCEID>/placed-nodes/<node id>``: JSON with ``v`` (1), ``node``, ``weight``, ``state`` (``normal`` or
``draining``), and for a guest ``guest`` (true). Each node writes its own at its first start, and it stays when the node stops. Every change
also changes ``/triplicate/<INSTANCEID>/placement``, in the same transaction. Nodes watch that one, and changes that depend on others check
its version.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from triplicate.client import Client
from triplicate.errors import BadVersion, FormatError, NodeExists, NoNode
from triplicate.metadata import CreateNode, SetData, ensure_node, own_paths
from triplicate.replica.core.placement import PlacedNode, Placement
from triplicate.replica.node_registration import registered_nodes
from triplicate.replica.replica_entries import names_beneath

FORMAT = 1
NORMAL = "normal"
DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """The entry of one node."""

    name: str
    weight: float = 1.0
    """The share of the load that it takes beside other nodes."""
    is_draining: bool = False
    is_guest: bool = False
    """Whether nobody expects it to run always: a program that has joined the folder of a cluster under the next free name."""


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
    def is_expected(self) -> bool:
        """Whether it should run, and have copies."""
        return not self.entry.is_draining and (self.is_running or not self.entry.is_guest)

    @property
    def state(self) -> str:
        """normal, draining, or absent."""
        return DRAINING if self.entry.is_draining else NORMAL if self.is_running else "absent"

    def placed(self, *, is_gone: bool = False) -> PlacedNode:
        entry = self.entry
        return PlacedNode(entry.name, entry.weight, entry.is_draining, self.is_running and self.knows_placement, is_gone)


def encode_entry(entry: NodeEntry) -> bytes:
    state = DRAINING if entry.is_draining else NORMAL
    fields: dict[str, object] = {"v": FORMAT, "node": entry.name, "weight": entry.weight, "state": state}
    if entry.is_guest:
        fields["guest"] = True
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def decode_entry(data: bytes) -> NodeEntry:
    """Raises FormatError."""
    try:
        fields = json.loads(data)
        if fields["v"] != FORMAT:
            raise ValueError(f"version {fields['v']}; this release knows {FORMAT}")
        if fields["state"] not in (NORMAL, DRAINING):
            raise ValueError(f"state {fields['state']!r}")
        return NodeEntry(str(fields["node"]), float(fields["weight"]), fields["state"] == DRAINING, bool(fields.get("guest", False)))
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


async def ensure_node_entry(client: Client, name: str, *, is_guest: bool = False) -> None:
    """Write the entry of a node unless it has one."""
    tree, path = client.metadata.tree, own_paths.placed_node_path(client.metadata.own_root, name)
    if await tree.exists(path) is not None:
        return
    version = await placement_version(client)
    await ensure_node(tree, own_paths.placed_nodes_path(client.metadata.own_root))
    try:
        await tree.multi([placement_change(client, version), CreateNode(path, encode_entry(NodeEntry(name, is_guest=is_guest)))])
    except (NodeExists, BadVersion):
        await ensure_node_entry(client, name, is_guest=is_guest)


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
    names = await names_beneath(tree, folder)
    found = {name: ListedNode(await node_entry(client, name)) for name in map(own_paths.decode_name, names)}
    for one in await registered_nodes(client):
        entry = found[one.node_id].entry if one.node_id in found else NodeEntry(one.node_id)
        found[one.node_id] = ListedNode(entry, one.address or "unknown", one.knows_placement)
    return [found[name] for name in sorted(found)]


def expected_copies(placement: Placement, nodes: Sequence[ListedNode]) -> frozenset[str]:
    """The nodes that are to have copies that may lead, whether they run or not. Draining nodes, and guests that do not run, are to have
    none that every node has."""
    if placement.copies is not None:
        return frozenset(placement.nodes)
    return frozenset(one.name for one in nodes if one.is_expected and placement.is_chosen(one.name))


def missing_copies(placement: Placement, nodes: Sequence[ListedNode], present: Collection[str]) -> list[str]:
    """The nodes that are to have copies of any kind and are not among `present`, by name."""
    readers = [one.name for one in nodes if one.is_expected and one.name in placement.readers]
    return sorted({*expected_copies(placement, nodes), *readers}.difference(present))
