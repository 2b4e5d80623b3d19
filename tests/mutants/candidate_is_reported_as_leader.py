"""A node is reported as the leader as soon as its machine begins to lead, although it does not serve yet."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log import LogWriter
from triplicate.replica import Replica

TESTS = ["tests/unit/replica/test_replica.py::test_a_node_is_reported_as_leader_once_it_serves"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = Replica._replay

    async def leading_at_once(self: Replica, writer: LogWriter) -> None:
        await original(self, writer)
        self._serves()

    patch(Replica, "_replay", leading_at_once)
