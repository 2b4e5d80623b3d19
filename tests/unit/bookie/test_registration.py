"""A bookie registers again when its session or its registration is lost."""

from __future__ import annotations

import asyncio

from tests.unit.bookie.bookie_rig import Rig, run_rig
from triplicate.bookie import Bookie
from triplicate.metadata import ClusterMetadata, MemoryTree, machine_of


def test_a_session_that_is_over_is_opened_again_where_the_bookie_can_reopen_it() -> None:
    async def body(rig: Rig) -> None:
        await rig.node.stop()
        host = rig.node.host
        assert host is not None
        trees: list[MemoryTree] = []

        async def open_metadata() -> ClusterMetadata:
            trees.append(MemoryTree(rig.cluster.store))
            return await ClusterMetadata.open(trees[-1], host.port)

        async def live() -> None:
            bookie = await Bookie.start(host.port, rig.bookie.settings, await open_metadata(), reopen=open_metadata)
            for _ in range(2):
                rig.cluster.store.expire(trees[-1].session_id)
                await asyncio.sleep(8)
                metadata = await open_metadata()
                assert list(await metadata.bookies.writable()) == ["bookie-1"]
                trees.pop()
                await metadata.aclose()
            await bookie.stop()

        await host.call(live())

    run_rig(body)


def test_a_bookie_records_its_machine() -> None:
    async def body(rig: Rig) -> None:
        metadata = rig.bookie.parts.metadata
        info = (await metadata.bookies.writable())["bookie-1"]
        recorded = await metadata.machines.get("bookie-1")
        assert recorded is not None
        assert machine_of("bookie-1", recorded) == machine_of("bookie-1", info)

    run_rig(body)


def test_a_lost_registration_comes_back() -> None:
    async def body(rig: Rig) -> None:
        bookies = rig.bookie.parts.metadata.bookies
        await bookies.unregister("bookie-1")
        assert await bookies.writable() == {}
        await asyncio.sleep(3)
        assert list(await bookies.writable()) == ["bookie-1"]

    run_rig(body)
