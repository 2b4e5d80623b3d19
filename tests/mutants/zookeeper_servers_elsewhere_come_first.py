"""A session is with any of ZooKeeper's servers, although there is one on its own machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triplicate.metadata.drivers import zookeeper_session
from triplicate.metadata.drivers.zookeeper_session import ServerAddress

TESTS = ["tests/unit/metadata/drivers/test_zookeeper_session_order.py::test_the_only_server_of_this_machine_comes_first"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def as_they_are(servers: Sequence[ServerAddress], own: ServerAddress | None) -> list[ServerAddress]:
        return list(servers)

    patch(zookeeper_session, "near_first", as_they_are)
