"""The log of kazoo has the requests with which a user authenticates."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.metadata.drivers import zookeeper_session

TESTS = [
    "tests/unit/metadata/drivers/test_zookeeper_tree_secured.py::test_no_password_is_logged",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(zookeeper_session._LOGGER, "filters", [])
