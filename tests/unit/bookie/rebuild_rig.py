"""The rebuild of a stopped bookie's index, and a bookie to rebuild it for."""

from __future__ import annotations

import asyncio
import dataclasses

from tests.unit.bookie.bookie_rig import Rig
from tests.unit.bookie.crash_rig import add_all, codec
from triplicate.bookie import RebuildReport, rebuild_index
from triplicate.errors import EnvironmentFault
from triplicate.metadata import ClusterMetadata, MemoryTree


async def rebuild(rig: Rig, *, lost_accepted: bool = False, **changes: object) -> RebuildReport:
    """On a host of its own, over the bookie's disk, as a command would."""
    settings = dataclasses.replace(rig.cluster.options.bookie_settings("bookie-1"), **changes)  # type: ignore[arg-type]
    host = rig.world.start_host("bookie-1")
    metadata = await ClusterMetadata.open(MemoryTree(rig.cluster.store), host.port)
    try:
        return await host.call(rebuild_index(host.port, settings, metadata, lost_accepted=lost_accepted))
    finally:
        await metadata.aclose()
        host.crash(keep_unsynced=True)


async def rebuilt_up_to(rig: Rig, step: int) -> bool:
    """Rebuild on a disk that fails after `step` operations; whether the rebuild had ended by then."""
    operations = 0

    def fail(kind: str, path: str) -> None:
        nonlocal operations
        operations += 1
        if operations > step:
            raise OSError(5, "pulled", path)

    rig.disk.before_operation = fail
    try:
        async with asyncio.timeout(20):
            await rebuild(rig)
    except (EnvironmentFault, OSError):
        return False
    finally:
        rig.disk.before_operation = None
    return True


async def filled(rig: Rig) -> None:
    client = await rig.connect()
    await add_all(client, 5, 0, 9)
    await client.fence(codec(7))
    await rig.bookie.storage.flush()
    await add_all(client, 5, 10, 12)
    await client.fence(codec(8))
    rig.node.crash(keep_unsynced=True)
