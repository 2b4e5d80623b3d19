"""A watch on ZooKeeper fires once and is not set again."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers import zookeeper_tree

TESTS = ["tests/unit/metadata/core/test_tree_contract.py::test_a_watch_wakes_for_its_node_and_its_children_only[zookeeper]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(zookeeper_tree.ZooKeeperTree, "_fired", lambda tree, path: tree._watches.wake([path]))
