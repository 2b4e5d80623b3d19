"""New ledger ids, from the names of sequential nodes. All clients of a cluster, Triplicate's and Apache's, share this source.

Source: BookKeeper `ZkLedgerIdGenerator`, `LongZkLedgerIdGenerator`.
"""

from __future__ import annotations

from contextlib import suppress

from triplicate.errors import ConnectionLost, EnvironmentFault, NodeExists, NoNode, NotEmpty
from triplicate.metadata.core.paths import SHORT_IDS_END, LedgerPaths, name_of
from triplicate.metadata.core.tree import Tree
from triplicate.metadata.retries import retried
from triplicate.runtime import Host

HIGH_NODES_KEPT = 3
HIGH_MAX = 2**31 - 1


class LedgerIdGenerator:
    """Generates ids from ``idgen`` until it overflows, then from ``idgen-long`` (63 bits)."""

    def __init__(self, tree: Tree, host: Host, root: str, paths: LedgerPaths) -> None:
        self._tree = tree
        self._host = host
        self._root = root
        self._paths = paths
        self._long = f"{root}/idgen-long"

    async def new_id(self) -> int:
        """Return an id that no other call in any process returns. Ids may be skipped.

        Raises:
            EnvironmentFault: the layout has no ids left.
        """
        if not self._paths.long_ids or await retried(self._host, lambda: self._tree.exists(self._long)) is None:
            ledger_id = await self._draw(self._root + self._paths.id_prefix)
            if ledger_id is not None:
                return ledger_id
            if not self._paths.long_ids:
                raise EnvironmentFault(f"{self._root}: the {self._paths.manager} layout has no ledger ids left")
            await self._create_if_missing(self._long)
        return await self._long_id()

    async def _draw(self, prefix: str) -> int | None:
        """The number of a fresh sequential node, or None when the counter has overflowed."""
        path = await retried(self._host, lambda: self._tree.create(prefix, ephemeral=True, sequential=True, parents=True))
        with suppress(NoNode, ConnectionLost):
            await self._tree.delete(path)  # The node is ephemeral: at worst it stays until the session ends.
        number = int(name_of(path).removeprefix("ID-"))
        return number if 0 <= number < SHORT_IDS_END else None

    async def _long_id(self) -> int:
        high_nodes, _ = await retried(self._host, lambda: self._tree.children(self._long))
        highs = sorted(int(name[4:]) for name in high_nodes if name.startswith("HOB-") and name[4:].isdigit())
        high = highs[-1] if highs else 1
        while high <= HIGH_MAX:
            if not highs or high > highs[-1]:
                await self._create_if_missing(self._high_path(high))
            low = await self._draw(f"{self._high_path(high)}/ID-")
            if low is not None:
                await self._forget_old(highs)
                return high << 32 | low
            high += 1
        raise EnvironmentFault(f"{self._root}: all 63-bit ledger ids are used up")

    def _high_path(self, high: int) -> str:
        return f"{self._long}/HOB-{high:010d}"

    async def _create_if_missing(self, path: str) -> None:
        try:
            await retried(self._host, lambda: self._tree.create(path, parents=True))
        except NodeExists:
            return  # Another client created it.

    async def _forget_old(self, highs: list[int]) -> None:
        for high in highs[:-HIGH_NODES_KEPT]:
            try:
                await self._tree.delete(self._high_path(high))
            except (NoNode, NotEmpty, ConnectionLost):
                continue  # Another client deletes it, now or later.
