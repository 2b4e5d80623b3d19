"""A change that relies on an ephemeral node of an expired session is repeated on the next session: it deletes another process's node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

TESTS = ["tests/unit/metadata/test_session_nodes.py::test_the_node_of_another_process_is_left_alone"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.metadata import RenewingTree, Tree

    async def repeated(self: RenewingTree, session_id: int, operation: Callable[[Tree], Awaitable[Any]]) -> Any:
        return await self.run(operation)

    patch(RenewingTree, "run_in", repeated)
