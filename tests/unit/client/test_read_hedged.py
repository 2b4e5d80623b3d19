"""A bookie that hangs, with its connections open, holds up neither a recovery nor a reading: the next replica is asked as well."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeBookie, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import Client, LedgerWriter
from triplicate.config import ClientSettings
from triplicate.wire import LAST_ENTRY, AddRequest, BatchReadRequest, ReadRequest, Status

PATIENT = replace(QUICK, read_timeout_s=60.0, add_timeout_s=60.0, connect_timeout_s=60.0, suspect_s=60.0, hedge_read_s=0.05)
"""Whatever waits for a time-out does not end within a test."""
LIMIT_S = 20.0
ENTRIES = 12


async def written(client: Client, ensemble_size: int = 3, write_quorum: int = 3) -> LedgerWriter:
    writer = await client.create(ensemble_size=ensemble_size, write_quorum=write_quorum, ack_quorum=2)
    for number in range(ENTRIES):
        await writer.append(b"%d" % number)
    return writer


def hang(bookie: FakeBookie, *, but_the_fence: bool = False) -> None:
    for kind in (AddRequest, BatchReadRequest, ReadRequest):
        bookie.when(kind, "hold")
    if but_the_fence:
        bookie.when(ReadRequest, Status.OK, entry_id=LAST_ENTRY)


@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("wire", ["v2", "v3"])
def test_a_recovery_does_not_wait_for_a_bookie_that_hangs(position: int, wire: str) -> None:
    async def main() -> None:
        settings = replace(PATIENT, wire=wire)
        async with fake_cluster("abcd") as cluster, cluster.client(settings) as client, cluster.client(settings) as other:
            writer = await written(client)
            hang(cluster[writer.metadata.last_segment.ensemble[position]])
            async with asyncio.timeout(LIMIT_S):
                reader = await other.recover(writer.ledger_id)
                assert reader.last_add_confirmed == ENTRIES - 1
                entries = await reader.read(0, ENTRIES - 1)
            assert [entry.payload for entry in entries] == [b"%d" % number for number in range(ENTRIES)]

    run(main())


@pytest.mark.parametrize("position", range(3))
def test_a_recovery_does_not_wait_for_a_bookie_that_hangs_behind_its_fence(position: int) -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(PATIENT) as client, cluster.client(PATIENT) as other:
            writer = await written(client)
            ensemble = writer.metadata.last_segment.ensemble
            bookie = cluster[ensemble[position]]
            # Two answers to the fence suffice. This one is therefore among them, and the bookie is not read last as one that was silent.
            cluster[ensemble[(position + 1) % 3]].when(ReadRequest, "hold", entry_id=LAST_ENTRY)
            for kind in (AddRequest, BatchReadRequest):
                bookie.when(kind, "hold")
            for entry_id in range(ENTRIES + 20):
                bookie.when(ReadRequest, "hold", entry_id=entry_id)
            async with asyncio.timeout(LIMIT_S):
                assert (await other.recover(writer.ledger_id)).last_add_confirmed == ENTRIES - 1

    run(main())


SINGLE = replace(PATIENT, batch_read=False)


@pytest.mark.parametrize(
    ("settings", "write_quorum"), [(PATIENT, 3), (SINGLE, 3), (PATIENT, 2), (replace(SINGLE, read_window_entries=2), 3)]
)
@pytest.mark.parametrize("position", range(3))
def test_a_reading_does_not_wait_for_a_bookie_that_hangs(settings: ClientSettings, write_quorum: int, position: int) -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(settings) as client:
            writer = await written(client, write_quorum=write_quorum)
            await writer.close()
            await cluster.settled(writer.ledger_id, ENTRIES - 1, copies=write_quorum)
            bookie = cluster[writer.metadata.last_segment.ensemble[position]]
            hang(bookie)
            reader = await client.open(writer.ledger_id)
            for _ in range(2):
                async with asyncio.timeout(LIMIT_S):
                    entries = await reader.read(0, ENTRIES - 1)
                assert [entry.payload for entry in entries] == [b"%d" % number for number in range(ENTRIES)]
            # It is asked last for a while; what it was asked before is all it owes.
            asked = len(bookie.seen)
            async with asyncio.timeout(LIMIT_S):
                await reader.read(0, ENTRIES - 1)
            assert len(bookie.seen) == asked
            bookie.release()  # A late answer does no harm.
            assert len(await reader.read(0, ENTRIES - 1)) == ENTRIES

    run(main())


def test_without_hedging_the_answer_is_waited_for() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(replace(SINGLE, hedge_read_s=0.0)) as client:
            writer = await written(client)
            await writer.close()
            await cluster.settled(writer.ledger_id, ENTRIES - 1)
            bookie = cluster[writer.metadata.last_segment.ensemble[0]]
            hang(bookie)
            reading = asyncio.ensure_future((await client.open(writer.ledger_id)).read(0, ENTRIES - 1))
            done, _ = await asyncio.wait([reading], timeout=0.3)
            assert not done
            bookie.obey()
            bookie.release()
            assert len(await asyncio.wait_for(reading, LIMIT_S)) == ENTRIES

    run(main())


@pytest.mark.parametrize("way", ["range", "batch", "single entries"])
def test_a_reading_that_was_given_up_asks_nobody_else(way: str) -> None:
    async def main() -> None:
        settings = replace(SINGLE if way == "single entries" else PATIENT, hedge_read_s=0.25)
        async with fake_cluster("abc") as cluster, cluster.client(settings) as client:
            writer = await written(client)
            await writer.close()
            await cluster.settled(writer.ledger_id, ENTRIES - 1)
            reader = await client.open(writer.ledger_id)
            before = {}
            for name, bookie in cluster.bookies.items():
                hang(bookie)
                before[name] = len(bookie.seen)

            def asked() -> list[str]:
                return [name for name, bookie in cluster.bookies.items() if len(bookie.seen) > before[name]]

            reading = asyncio.ensure_future(reader.read_batch(3, 3) if way == "batch" else reader.read(3, 3 + 2 * (way == "range")))
            async with asyncio.timeout(LIMIT_S):
                await eventually(lambda: bool(asked()))
            first = asked()
            assert len(first) == 1
            reading.cancel()
            await asyncio.wait([reading])
            await asyncio.sleep(2 * settings.hedge_read_s)
            assert asked() == first

    run(main())
