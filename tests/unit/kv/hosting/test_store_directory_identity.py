"""A key-value store that was dropped and created again under its name is another one: a late drop of the first leaves it alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.unit.kv.store_cluster import StoreCluster
from tests.unit.replica.hanging_tree import Hold, touches
from triplicate.errors import NoSuchStore
from triplicate.kv import drop_store, read_store
from triplicate.metadata import DeleteNode, SetData, TreeOperation, own_paths

ENTRY = "/triplicate/test/stores/s"


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "of an earlier release"])
@pytest.mark.parametrize("held", [touches(ENTRY, SetData), touches(ENTRY, DeleteNode)], ids=["mark", "deletion"])
def test_a_late_drop_does_nothing_to_the_next_store(tmp_path: Path, held: Callable[[Sequence[TreeOperation]], bool], marked: bool) -> None:
    async def scene() -> None:
        cluster = StoreCluster(tmp_path)
        await cluster.create()
        late, user = cluster.client("late"), cluster.client("user")
        tree = user.metadata.tree
        if not marked:
            folder = own_paths.identities_path(ENTRY)
            names, _ = await tree.children(folder)
            await tree.multi([*(DeleteNode(f"{folder}/{name}") for name in names), DeleteNode(folder)])
        hold = Hold(late.metadata.tree, held)
        task = asyncio.ensure_future(drop_store(late, "s"))
        await asyncio.wait_for(hold.reached.wait(), 5)
        version = (await tree.get(ENTRY))[1].version
        if version:
            await tree.multi([DeleteNode(path) for path in sorted(below(cluster), reverse=True)])  # As the end of another drop does.
        else:
            await drop_store(user, "s")
        await cluster.create()
        for _ in range(version):
            await tree.set(ENTRY, (await tree.get(ENTRY))[0])
        before, info = below(cluster), await read_store(user, "s")
        hold.go_on.set()
        (result,) = await asyncio.gather(task, return_exceptions=True)
        assert below(cluster) == before
        assert not isinstance(result, BaseException) or isinstance(result, NoSuchStore), result
        await cluster.logs["user"].head(info.log)

    asyncio.run(scene())


def below(cluster: StoreCluster) -> dict[str, bytes]:
    return {path: data for path, (data, _) in cluster.stage.store.dump().items() if path.startswith(ENTRY)}
