"""A node takes any registration under its name for one that its own former life has left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triplicate.sql import registration
from triplicate.sql.registration import NodeName, Registration

TESTS = ["tests/unit/sql/test_node.py::test_two_living_nodes_of_one_name_are_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    put_up = NodeName._put_up
    decoded = registration._decoded

    async def anyway(self: NodeName, *, replace_former_lives: bool) -> Registration | None:
        patch(registration, "_decoded", lambda data: replace(decoded(data), directory=self._own.directory, life=self._life))
        return await put_up(self, replace_former_lives=replace_former_lives)

    patch(NodeName, "_put_up", anyway)
