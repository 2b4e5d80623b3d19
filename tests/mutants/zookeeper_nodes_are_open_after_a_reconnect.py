"""Nodes that are created after a broken connection have no ACL."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers.zookeeper_session import ZooKeeperSession

TESTS = [
    "tests/unit/metadata/drivers/test_zookeeper_tree_secured.py::test_nodes_are_closed_and_the_user_is_known_after_a_broken_connection",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = ZooKeeperSession._renew_credentials
    connected: set[int] = set()

    def renew(session: ZooKeeperSession) -> None:
        original(session)
        if id(session) in connected:
            session._client.default_acl = None
        connected.add(id(session))

    patch(ZooKeeperSession, "_renew_credentials", renew)
