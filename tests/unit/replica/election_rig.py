"""Elections over trees whose watches do not wake, and peers that are judged at once or never."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.unit.log.fake import Stage
from triplicate.metadata import Tree
from triplicate.replica import Election, PeerLoss
from triplicate.runtime import Host

PATH = "/machine"
INTERVAL_S = 0.01
A_WHILE_S = 20 * INTERVAL_S


async def gone_at_once(address: str) -> PeerLoss:
    assert address == "m0:1"
    return PeerLoss()


async def never_gone(_: str) -> PeerLoss:
    await asyncio.Event().wait()
    return PeerLoss()


def election(host: Host, tree: Tree, name: str, **options: Any) -> Election:
    return Election(host, tree, PATH, name, f"{name}:1", **{"delay_s": 0.01, **options})


class DeafTree:
    """A tree whose watches never wake."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tree, name)

    def watch(self, path: str) -> Any:
        return _DeafWatch()


class SilentTree:
    """A tree that does not answer while `answers` is cleared. Its watches may wake."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.answers = asyncio.Event()
        self.answers.set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._tree, name)
        if name in ("watch", "session_id"):
            return found

        async def answered(*arguments: Any, **options: Any) -> Any:
            await self.answers.wait()
            return await found(*arguments, **options)

        return answered


class _DeafWatch:
    async def changed(self) -> None:
        await asyncio.Event().wait()

    def close(self) -> None:
        return


async def trees_of(stage: Stage, count: int) -> list[Tree]:
    trees = [stage.logs().client.metadata.tree for _ in range(count)]
    await trees[0].create(PATH)
    return trees
