"""A ledger in the trash, and the bookie that keeps its entries."""

from __future__ import annotations

from tests.unit.bookie.bookie_rig import Rig
from triplicate.metadata import ClusterMetadata, MemoryTree
from triplicate.wire import Status

PERIOD_S = 20.0


async def open_metadata(rig: Rig) -> ClusterMetadata:
    # Tests of clocks that differ set the difference themselves.
    ours = rig.client_host.port.clock
    assert rig.node.host is not None
    ours.jump((rig.node.host.port.clock.wall_us() - ours.wall_us()) / 1e6)  # type: ignore[attr-defined]
    return await ClusterMetadata.open(MemoryTree(rig.cluster.store), rig.client_host.port)


async def filled(rig: Rig, metadata: ClusterMetadata, ledger_id: int = 5) -> None:
    """A ledger with one entry, deleted; the bookie has noticed."""
    ledger = await rig.create_ledger(ledger_id)
    client = await rig.connect()
    assert await client.add(ledger, 0) is Status.OK
    await rig.bookie.storage.flush()
    await metadata.trash.delete(ledger_id, PERIOD_S)
    assert not await metadata.ledgers.exists(ledger_id)
    assert await rig.bookie.collect_garbage() == 0


async def entry_is_there(rig: Rig) -> bool:
    status = (await (await rig.connect()).read(5, 0)).status
    assert status in (Status.OK, Status.NO_LEDGER)
    return status is Status.OK
