"""A starting node treats any registration under its name as one of its own earlier life."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.errors import NoNode
from triplicate.metadata import CreateNode, DeleteNode
from triplicate.replica.node_registration import NodeRegistrar, NodeRegistration, encode_registration

TESTS = ["tests/unit/replica/test_node_registration_names.py::test_two_living_nodes_of_one_name_are_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    register = NodeRegistrar._register

    async def anyway(self: NodeRegistrar, *, replace_former_lives: bool) -> NodeRegistration | None:
        if not replace_former_lives:
            return await register(self, replace_former_lives=False)
        try:
            _, stat = await self._tree.get(self._path)
        except NoNode:
            return await register(self, replace_former_lives=True)
        # At once, before the other hears that its registration is gone.
        await self._tree.multi(
            [DeleteNode(self._path, stat.version), CreateNode(self._path, encode_registration(self._own), ephemeral=True)]
        )
        self._held_by = self._tree.session_id
        return None

    patch(NodeRegistrar, "_register", anyway)
