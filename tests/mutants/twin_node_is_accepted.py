"""A node that starts takes any registration under its name for one that its own former life has left."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import NoNode
from triplicate.metadata import Create, Delete
from triplicate.sql.registration import NodeName, Registration, encode_registration

TESTS = ["tests/unit/sql/test_node_names.py::test_two_living_nodes_of_one_name_are_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    put_up = NodeName._put_up

    async def anyway(self: NodeName, *, replace_former_lives: bool) -> Registration | None:
        if not replace_former_lives:
            return await put_up(self, replace_former_lives=False)
        try:
            _, stat = await self._tree.get(self._path)
        except NoNode:
            return await put_up(self, replace_former_lives=True)
        # At once, before the other hears that its registration is gone.
        await self._tree.multi([Delete(self._path, stat.version), Create(self._path, encode_registration(self._own), ephemeral=True)])
        self._held_by = self._tree.session_id
        return None

    patch(NodeName, "_put_up", anyway)
