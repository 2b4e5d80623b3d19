"""A session whose first transaction of a kind hangs, while others delete and create what it was meant for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from triplicate.metadata import ANY_VERSION, DeleteNode, SetData, Stat, Tree, TreeOperation


class Hold:
    """Lets a session's first change that is `held`, from now on, hang until it may go on. Single changes count as transactions of one."""

    def __init__(self, session: Tree, held: Callable[[Sequence[TreeOperation]], bool]) -> None:
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()
        tree: Any = session
        multi, set_data, delete = tree.multi, tree.set, tree.delete

        async def hang(operations: Sequence[TreeOperation]) -> None:
            if not self.reached.is_set() and held(operations):
                self.reached.set()
                await self.go_on.wait()

        async def hanging_multi(operations: Sequence[TreeOperation]) -> None:
            await hang(operations)
            await multi(operations)

        async def hanging_set(path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
            await hang([SetData(path, data, version)])
            found: Stat = await set_data(path, data, version)
            return found

        async def hanging_delete(path: str, version: int = ANY_VERSION) -> None:
            await hang([DeleteNode(path, version)])
            await delete(path, version)

        tree.multi, tree.set, tree.delete = hanging_multi, hanging_set, hanging_delete


def touches(path: str, kind: type[TreeOperation] | None = None) -> Callable[[Sequence[TreeOperation]], bool]:
    """Whether a transaction changes a node, in any way or by one kind of operation."""
    return lambda operations: any(one.path == path and isinstance(one, kind or (SetData, DeleteNode)) for one in operations)
