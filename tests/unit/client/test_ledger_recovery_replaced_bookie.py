"""A bookie of a ledger's lost its disk and came back under its name: no recovery takes what it lost for what never was."""

from __future__ import annotations

import asyncio

import pytest

from triplicate.bookie import Replacement
from triplicate.client import Client
from triplicate.errors import ReadFailed, RecoveryFailed, TriplicateError
from triplicate.metadata import ClusterMetadata, MemoryTree
from triplicate.sim import World
from triplicate_simulator import ClusterOptions, SimulatedCluster, small_bookie_settings
from triplicate_simulator.cluster.simulated_cluster import JOURNAL_DIRECTORY, LEDGER_DIRECTORY

ENTRIES = 20


async def lose_disk_and_replace(cluster: SimulatedCluster, name: str) -> None:
    node, disk = cluster.bookies[name], cluster.world.disk(name)
    node.crash()
    for tree in (disk.names.live, disk.names.durable):
        for path in [path for path in tree if path != "/"]:
            del tree[path]
    for directory in (JOURNAL_DIRECTORY, LEDGER_DIRECTORY):
        disk.make_directory(directory)
    await asyncio.sleep(cluster.options.session_high_s + 1)
    host = cluster.world.start_host(name)

    async def replace() -> None:
        metadata = await ClusterMetadata.open(MemoryTree(cluster.store), host.port)
        await Replacement(host.port, small_bookie_settings(name), metadata).carry_out()
        await metadata.aclose()

    await host.call(replace(), name="format")
    host.crash(keep_unsynced=True)
    await node.restart()


@pytest.mark.parametrize("seed", range(3))
def test_a_recovery_waits_for_other_replicas_instead_of_believing_a_replaced_bookie(seed: int) -> None:
    """Three copies were written, two disks of them are away: one was lost and replaced, one is only down. The third bookie was cut off
    while the entries were acknowledged, so that it truly has none of them."""
    world = World(seed)
    cluster = SimulatedCluster(world, ClusterOptions(bookies=3))

    async def write(client: Client) -> int:
        cluster.bookies["bookie-3"].crash()
        writer = await client.create(ensemble_size=3, write_quorum=3, ack_quorum=2)
        assert await writer.append_many([b"%d" % number for number in range(ENTRIES)]) == range(ENTRIES)
        return writer.ledger_id

    async def main() -> None:
        await cluster.start()
        ledger_id = await cluster.client("writer").run(write)
        cluster.client("writer").crash()
        await lose_disk_and_replace(cluster, "bookie-1")
        cluster.bookies["bookie-2"].crash()
        await cluster.bookies["bookie-3"].restart()

        async def recover_in_vain(client: Client) -> None:
            with pytest.raises((TriplicateError, TimeoutError)):
                await asyncio.wait_for(client.recover(ledger_id), 60)

        async def recover(client: Client) -> list[bytes]:
            for _ in range(20):
                try:
                    recovered = await client.recover(ledger_id)
                    return [entry.payload for entry in await recovered.read(0, recovered.last_add_confirmed)]
                except (RecoveryFailed, ReadFailed):
                    await asyncio.sleep(1)
            raise AssertionError("it is not recovered")

        await cluster.client("first").run(recover_in_vain)
        await cluster.bookies["bookie-2"].restart()
        assert await cluster.client("second").run(recover) == [b"%d" % number for number in range(ENTRIES)]

    try:
        world.run(main())
    finally:
        world.close()
