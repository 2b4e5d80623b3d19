"""The missing parents of a node are created in ZooKeeper without the ACL of the session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from kazoo.security import OPEN_ACL_UNSAFE

from triplicate.errors import NodeExists
from triplicate.metadata.core.paths import ancestors_of
from triplicate.metadata.drivers.zookeeper_tree import ZooKeeperTree

TESTS = [
    "tests/unit/metadata/drivers/test_zookeeper_tree_secured.py::test_every_kind_of_creation_makes_a_node_of_the_user_alone",
]


async def create_parents(tree: ZooKeeperTree, path: str) -> None:
    for ancestor in ancestors_of(path):
        with suppress(NodeExists):
            await tree._run(ancestor, lambda client, ancestor=ancestor: client.create_async(ancestor, b"", OPEN_ACL_UNSAFE))  # type: ignore[misc]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(ZooKeeperTree, "_create_parents", create_parents)
