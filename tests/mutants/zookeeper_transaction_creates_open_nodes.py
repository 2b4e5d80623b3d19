"""A transaction creates nodes in ZooKeeper without the ACL of the session."""

from __future__ import annotations

from collections.abc import Callable

from kazoo.client import TransactionRequest
from kazoo.security import OPEN_ACL_UNSAFE

from triplicate.metadata.core.tree import CreateNode, TreeOperation
from triplicate.metadata.drivers import zookeeper_tree

TESTS = [
    "tests/unit/metadata/drivers/test_zookeeper_tree_secured.py::test_every_kind_of_creation_makes_a_node_of_the_user_alone",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = zookeeper_tree._add

    def add(transaction: TransactionRequest, operation: TreeOperation) -> None:
        if isinstance(operation, CreateNode):
            transaction.create(operation.path, operation.data, OPEN_ACL_UNSAFE, ephemeral=operation.ephemeral)
        else:
            original(transaction, operation)

    patch(zookeeper_tree, "_add", add)
