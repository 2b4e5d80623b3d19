"""A bookie whose copy is damaged is not believed when it says, beside it, how far the ledger is confirmed."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from triplicate.client import LedgerWriter

FAR = (10**12).to_bytes(8, "big")


async def written(cluster: FakeCluster, writer: LedgerWriter) -> None:
    """Three entries, of which the copy of entry 0 on the bookie that is asked first says that far more is confirmed."""
    for payload in (b"0", b"1", b"2"):
        await writer.append(payload)
    await cluster.settled(writer.ledger_id, 2)
    entries = cluster[writer.metadata.last_segment.ensemble[0]].ledgers[writer.ledger_id].entries
    entries[0] = entries[0][:16] + FAR + entries[0][24:]


def test_reading_a_damaged_copy_confirms_nothing() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client(replace(QUICK, wire="v3")) as client:
            writer = await client.create()
            await written(cluster, writer)
            reader = await client.open(writer.ledger_id)
            assert [entry.payload for entry in await reader.read(0, 0)] == [b"0"]
            assert reader.last_add_confirmed <= 2

    run(main())


def test_a_poll_that_brings_a_damaged_copy_confirms_nothing() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            writer = await client.create()
            # Which bookie a reader polls first is random.
            readers = [await client.open(writer.ledger_id) for _ in range(12)]
            await written(cluster, writer)
            for reader in readers:
                entry = await reader.wait_for_entry(0, 5.0)
                assert entry is not None
                assert entry.payload == b"0"
                assert reader.last_add_confirmed <= 2

    run(main())
