"""The role of the ZooKeeper server on this machine is kept over an election of its servers."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers.zookeeper_tree import ZooKeeperTree

TESTS = [
    "tests/unit/metadata/drivers/test_zookeeper_role.py::test_the_server_of_this_machine_is_asked_once_on_each_connection",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    changed = ZooKeeperTree._state_changed

    def keeping(self: ZooKeeperTree, state: str, session_id: int) -> None:
        connections = self._connections
        changed(self, state, session_id)
        self._connections = max(connections, 1)

    patch(ZooKeeperTree, "_state_changed", keeping)
