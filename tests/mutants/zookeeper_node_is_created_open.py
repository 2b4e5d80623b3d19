"""A node is created in ZooKeeper without the ACL of the session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE

TESTS = [
    "tests/unit/metadata/drivers/test_zookeeper_tree_secured.py::test_every_kind_of_creation_makes_a_node_of_the_user_alone",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = KazooClient.create_async

    def create_async(client: KazooClient, path: str, value: bytes = b"", acl: Any = None, **options: Any) -> Any:
        return original(client, path, value, acl if options.get("sequence") else OPEN_ACL_UNSAFE, **options)

    patch(KazooClient, "create_async", create_async)
