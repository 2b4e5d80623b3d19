"""A leader answers reads without checking that it still leads."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.engine.leadership import Leadership

TESTS = ["tests/unit/sql/hosting/test_database_node.py::test_a_deposed_leader_serves_no_read"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    async def at_once(self: Leadership) -> None:
        return

    patch(Leadership, "barrier", at_once)
