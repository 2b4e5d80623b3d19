"""Identities of nodes: they distinguish a node from another one that was created under its path after the node was deleted.

A version does not, since each node counts its changes from 0. ``<path>/id/<identity>`` are two empty nodes that are created and deleted in
one transaction with the node, and no two nodes have the same identity. The folder has the same path for all nodes of a path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triplicate.errors import NodeExists, NoNode
from triplicate.metadata.core.own_paths import identities_path, identity_path
from triplicate.metadata.core.paths import parent_of
from triplicate.metadata.core.tree import CheckVersion, CreateNode, DeleteNode, SetData, Tree, TreeOperation
from triplicate.runtime import Host


def identity_check(path: str, identity: str) -> CheckVersion:
    """An operation that fails with NoNode unless the node of this identity is there."""
    return CheckVersion(identity_path(path, identity))


def identity_nodes(path: str, identity: str) -> list[TreeOperation]:
    """The operations that give an identity to a node. They fail with NodeExists if it has one."""
    return [CreateNode(identities_path(path)), CreateNode(identity_path(path, identity))]


def new_identity(host: Host) -> str:
    """An identity that no other node has."""
    return host.entropy.stream("metadata.identity").randbytes(16).hex()


def creation(path: str, data: bytes, identity: str) -> list[TreeOperation]:
    """The operations that create a node with an identity. Its parent must exist."""
    return [CreateNode(path, data), *identity_nodes(path, identity)]


async def create_identified(tree: Tree, path: str, data: bytes, host: Host) -> None:
    """Create a node with an identity, and its missing parent. Raises NodeExists."""
    operations = creation(path, data, new_identity(host))
    try:
        await tree.multi(operations)
    except NoNode:
        await ensure_node(tree, parent_of(path))
        await tree.multi(operations)


async def ensure_node(tree: Tree, path: str) -> None:
    """Make an empty node with its parents, unless there is one."""
    if await tree.exists(path) is None:
        try:
            await tree.create(path, parents=True)
        except NodeExists:
            return


@dataclass(frozen=True, slots=True)
class IdentifiedNode:
    """A node as it was read, and its identity."""

    path: str
    data: bytes
    version: int
    identity: str
    """Empty: an earlier release has created the node, without an identity."""

    @property
    def checks(self) -> Sequence[TreeOperation]:
        """Operations that fail, with NoNode or NodeExists, if another node is at the path."""
        if self.identity:
            return [identity_check(self.path, self.identity)]
        folder = identities_path(self.path)
        return [CreateNode(folder), DeleteNode(folder)]  # It fails where a node has an identity.

    def change(self, data: bytes) -> list[TreeOperation]:
        """The operations that set the data. They fail with BadVersion, NoNode or NodeExists if anything has changed since the reading."""
        return [*self.checks, SetData(self.path, data, self.version)]


async def read_identified(tree: Tree, path: str) -> IdentifiedNode:
    """Read a node. Raises NoNode."""
    # The identity comes first. If it is there at a later transaction too, it was there at the reading of the data.
    try:
        names, _ = await tree.children(identities_path(path))
    except NoNode:
        names = []
    data, stat = await tree.get(path)
    return IdentifiedNode(path, data, stat.version, names[0] if names else "")
