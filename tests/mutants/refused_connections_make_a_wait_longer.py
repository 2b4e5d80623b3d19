"""A client that was refused a few times waits for a server that does not answer until the session expires."""

from collections.abc import Callable
from typing import Any

from triplicate.metadata.drivers import zookeeper_session

TESTS = ["tests/unit/metadata/drivers/test_zookeeper_tree.py::test_a_server_that_accepts_a_connection_and_does_not_answer_costs_no_session"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = zookeeper_session._OneSession.create_connection

    def create_connection(self: zookeeper_session._OneSession, address: tuple[str, int], **options: Any) -> Any:
        self._patience.waited_in_vain(address, self._now())
        return original(self, address, **options)

    patch(zookeeper_session._OneSession, "create_connection", create_connection)
