"""The clock of the metadata store."""

from __future__ import annotations

from triplicate.errors import NoNode
from triplicate.metadata.core import own_paths
from triplicate.metadata.core.tree import Tree
from triplicate.metadata.node_identity import ensure_node


async def store_time_ms(tree: Tree, own_root: str) -> int:
    """The time of the metadata store, ms since the epoch. Ages of nodes are measured by it, so that its clock is compared with itself."""
    path = own_paths.clock_path(own_root)
    try:
        return (await tree.set(path, b"")).mtime_ms
    except NoNode:
        await ensure_node(tree, path)
        return (await tree.set(path, b"")).mtime_ms
