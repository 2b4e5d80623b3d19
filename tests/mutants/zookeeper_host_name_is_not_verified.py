"""A client of ZooKeeper accepts a certificate of the authority with another name."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from triplicate.metadata.drivers.zookeeper_session import ZooKeeperSession

TESTS = [
    "tests/unit/metadata/drivers/test_zookeeper_tree_secured.py::test_a_server_with_another_name_is_not_trusted",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = ZooKeeperSession._context

    def context(session: ZooKeeperSession, limit_s: float) -> ssl.SSLContext:
        found = original(session, limit_s)
        found.check_hostname = False
        return found

    patch(ZooKeeperSession, "_context", context)
