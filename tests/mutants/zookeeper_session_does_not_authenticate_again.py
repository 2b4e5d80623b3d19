"""A connection after a broken one does not authenticate."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers.zookeeper_session import ZooKeeperSession

TESTS = [
    "tests/unit/metadata/drivers/test_zookeeper_tree_secured.py::test_nodes_are_closed_and_the_user_is_known_after_a_broken_connection",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = ZooKeeperSession._renew_credentials

    def renew(session: ZooKeeperSession) -> None:
        again = session.acl is not None
        original(session)
        if again:
            session._client._connection.sasl_options = None

    patch(ZooKeeperSession, "_renew_credentials", renew)
