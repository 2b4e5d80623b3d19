"""A new role is reported with the next report, and not at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from triplicate.replica import Replica, Role

TESTS = ["tests/unit/replica/test_replica.py::test_a_node_is_reported_as_leader_once_it_serves"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = Replica._become

    def silently(self: Replica, role: Role) -> None:
        wakes, self._role_changed = self._role_changed, asyncio.Event()
        original(self, role)
        self._role_changed = wakes

    patch(Replica, "_become", silently)
