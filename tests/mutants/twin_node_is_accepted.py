"""A node that starts takes any registration under its name for one that its own former life has left."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from triplicate.errors import NoNode
from triplicate.sql.registration import NodeName, Registration

TESTS = ["tests/unit/sql/test_node_names.py::test_two_living_nodes_of_one_name_are_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    put_up = NodeName._put_up

    async def anyway(self: NodeName, *, replace_former_lives: bool) -> Registration | None:
        if replace_former_lives:
            with suppress(NoNode):
                await self._tree.delete(self._path)
        return await put_up(self, replace_former_lives=replace_former_lives)

    patch(NodeName, "_put_up", anyway)
