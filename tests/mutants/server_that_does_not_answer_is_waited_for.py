"""A client waits for a server that accepts a connection and does not answer until the session expires."""

from collections.abc import Callable

from triplicate.metadata.drivers import zookeeper_session

TESTS = ["tests/unit/metadata/drivers/test_zookeeper_tree.py::test_a_server_that_accepts_a_connection_and_does_not_answer_costs_no_session"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(zookeeper_session, "FIRST_WAIT_SHARE", 1.0)
