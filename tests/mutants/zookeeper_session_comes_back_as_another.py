"""kazoo opens another session under a tree whose session has expired."""

from __future__ import annotations

from collections.abc import Callable

from kazoo.handlers.threading import SequentialThreadingHandler

from triplicate.metadata.drivers import zookeeper_session
from triplicate.metadata.drivers.zookeeper_tree import ZooKeeperTree

TESTS = ["tests/unit/metadata/drivers/test_zookeeper_tree.py::test_a_session_that_is_over_finishes_the_tree_and_applies_nothing_more"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(zookeeper_session._OneSession, "create_connection", SequentialThreadingHandler.create_connection)
    patch(ZooKeeperTree, "_expire", lambda tree: None)
