"""A session whose reads are behind, as those of a ZooKeeper server may be, until a test lets it catch up."""

from __future__ import annotations

from triplicate.errors import NoNode
from triplicate.metadata import MemoryStore, MemoryTree, Stat


class LaggingTree(MemoryTree):
    """Changes go through at once. `behind` names the nodes that reads see as they once were: with other data, or not at all (None)."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.behind: dict[str, bytes | None] = {}

    async def sync(self, path: str) -> None:
        await super().sync(path)
        self.behind = {node: data for node, data in self.behind.items() if not f"{node}/".startswith(f"{path.rstrip('/')}/")}

    async def get(self, path: str) -> tuple[bytes, Stat]:
        data, stat = await super().get(path)
        seen = self.behind.get(path, data)
        if seen is None:
            raise NoNode(path)
        return seen, stat

    async def exists(self, path: str) -> Stat | None:
        return None if self.behind.get(path, b"") is None else await super().exists(path)

    async def children(self, path: str) -> tuple[list[str], Stat]:
        names, stat = await super().children(path)
        return [name for name in names if self.behind.get(f"{path}/{name}", b"") is not None], stat
