"""The index never names runs that the entry logs do not hold yet, at whichever step the bookie dies."""

from __future__ import annotations

import asyncio

from tests.unit.bookie.bookie_rig import NAME, Rig, run_rig
from tests.unit.bookie.crash_rig import add_all, codec
from triplicate.bookie import Inspection
from triplicate.metadata import ClusterMetadata, MemoryTree
from triplicate.wire import Status


async def instance_id(rig: Rig) -> str:
    metadata = await ClusterMetadata.open(MemoryTree(rig.cluster.store), rig.client_host.port)
    await metadata.aclose()
    return metadata.instance_id


async def killed_in_a_flush(rig: Rig, step: int) -> bool:
    """Kill the bookie before operation number `step` of a flush; False: the flush has fewer."""
    client = await rig.connect()
    await add_all(client, 5, 0, 3)
    await rig.flushed()
    await add_all(client, 5, 4, 9)
    assert (await client.fence(codec(7))).status is Status.NO_ENTRY
    happened: list[str] = []
    rig.kill_at(step, happened)
    await asyncio.sleep(2)
    rig.disk.before_operation = None
    return bool(happened)


def test_a_kill_at_any_step_of_a_flush_leaves_an_index_that_agrees_with_the_logs() -> None:
    for step in range(200):

        async def body(rig: Rig, step: int = step) -> bool:
            if not await killed_in_a_flush(rig, step):
                return False
            await rig.node.start()
            assert rig.node.host is not None
            inspection = Inspection(rig.node.host.port, rig.bookie.settings, NAME, await instance_id(rig))
            assert list(inspection.problems()) == [], step
            return True

        if not run_rig(body, seed=step):
            assert step >= 8, "a flush writes and syncs entry log, index and mark"
            return
    raise AssertionError("a flush ends")
