"""A node that everyone may use counts as one of the user."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.core.tree import Tree
from triplicate.metadata.drivers.metadata_access import AclState
from triplicate.metadata.drivers.zookeeper_tree import ZooKeeperTree

TESTS = [
    "tests/unit/metadata/drivers/test_zookeeper_tree_secured.py::test_a_cluster_with_open_nodes_is_found_and_closed",
]


async def acl_state(tree: Tree, path: str) -> AclState:
    await tree.get(path)
    return AclState.OURS


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ZooKeeperTree, "acl_state", acl_state)
