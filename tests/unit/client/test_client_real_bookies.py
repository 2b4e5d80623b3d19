"""Our client on our bookies, over either version, through everything a reader can ask."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.client.cluster import run
from tests.unit.client.real_cluster import real_cluster
from triplicate.bookie import Bookie
from triplicate.config import ClientSettings
from triplicate.errors import LedgerFenced, NoSuchEntry
from triplicate.ledger import DigestType

WIRES = [ClientSettings(), ClientSettings(wire="v3")]


@pytest.mark.parametrize("digest_type", list(DigestType))
@pytest.mark.parametrize("settings", WIRES)
def test_a_ledger_is_written_read_and_recovered(settings: ClientSettings, digest_type: DigestType) -> None:
    async def main() -> None:
        async with real_cluster() as cluster, cluster.client(settings) as client:
            payloads = [b"%d" % number * (number % 40) for number in range(700)]
            writer = await client.create(digest_type=digest_type, password=b"secret")
            assert await writer.append_many(payloads) == range(700)
            reader = await client.open(writer.ledger_id, password=b"secret")
            assert [entry.payload for entry in await reader.read_unconfirmed(0, 699)] == payloads
            recovered = await client.recover(writer.ledger_id, password=b"secret")
            assert recovered.last_add_confirmed == 699
            assert [entry.payload for entry in await recovered.read(0, 699)] == payloads
            batch = await recovered.read_batch(650, 100)
            assert [entry.payload for entry in batch] == payloads[650 : 650 + len(batch)]
            with pytest.raises(LedgerFenced):
                await writer.append(b"too late")
            # A bookie that the recovery has not fenced may have accepted entry 700, which is not part of the ledger.
            with pytest.raises(NoSuchEntry):
                await recovered.read_unconfirmed(701, 701)

    run(main())


@pytest.mark.parametrize("settings", WIRES)
def test_a_tail_follows_a_writer(settings: ClientSettings) -> None:
    async def main() -> None:
        async with real_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            reader = await client.open(writer.ledger_id)
            seen: list[bytes] = []

            async def follow() -> None:
                async with reader.tail() as tail:
                    seen.extend([entry.payload async for entry in tail])

            following = asyncio.ensure_future(follow())
            for number in range(40):
                await writer.append(b"%d" % number)
                await asyncio.sleep(0.002 * (number % 5))
            await writer.append_many([b"%d" % number for number in range(40, 900)])
            await writer.close()
            await following
            assert seen == [b"%d" % number for number in range(900)]

    run(main())


@pytest.mark.parametrize("settings", WIRES)
def test_bookies_answer_what_they_are_asked_about_a_ledger(settings: ClientSettings) -> None:
    async def main() -> None:
        async with real_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            for number in range(5):
                await writer.append(b"%d" % number)
            reader = await client.open(writer.ledger_id)
            assert await reader.read_last_confirmed() == 3
            assert await reader.try_last_confirmed() == 3
            assert await reader.read_explicit_last_confirmed() is None
            waiting = asyncio.ensure_future(reader.wait_for_entry(4, 5.0))
            await asyncio.sleep(0.05)
            await writer.append(b"5")
            entry = await waiting
            assert entry is not None
            assert entry.payload == b"4"
            while (await reader.entries_on("a")).count < 6:
                await asyncio.sleep(0.005)  # An ack quorum may have done without this bookie.
            assert list((await reader.entries_on("a")).runs()) == [range(6)]
            info = await client.bookie_info("b")
            assert 0 < info.free_bytes <= info.total_bytes

    run(main())


@pytest.mark.parametrize("wire", ["v2", "v3"])
def test_an_explicit_record_shows_the_last_entry_of_a_writer_that_pauses(wire: str) -> None:
    async def main() -> None:
        settings = ClientSettings(wire=wire, explicit_lac_interval_s=0.02)
        async with real_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            await writer.append_many([b"a", b"b"])
            reader = await client.open(writer.ledger_id)
            async with reader.tail() as tail:
                assert [(await anext(tail)).payload, (await anext(tail)).payload] == [b"a", b"b"]
            while await reader.read_explicit_last_confirmed() != 1:
                await asyncio.sleep(0.005)  # The tail heard from one bookie; a read may hear from two that have not synced the record yet.

    run(main())


@pytest.mark.parametrize("settings", WIRES)
def test_three_bookies_survive_the_restart_of_one_under_a_writer(settings: ClientSettings) -> None:
    async def main() -> None:
        async with real_cluster() as cluster, cluster.client(settings) as client:
            writer = await client.create()
            await writer.append_many([b"before"] * 100)
            early = await client.open(writer.ledger_id)
            while 0 not in await early.entries_on("b"):  # Two of the three suffice, and it may be the third.
                await asyncio.sleep(0.01)
            gone = cluster.bookies["b"]
            await gone.stop()
            await writer.append_many([b"without"] * 100)
            while not writer.missing_bookies:
                await writer.append(b"without")
            hole = writer.last_add_confirmed
            again = await Bookie.start(cluster.host, gone.settings, cluster.metadata)
            try:
                while writer.missing_bookies:
                    await writer.append(b"without")
                    await asyncio.sleep(0.01)
                await writer.append_many([b"behind"] * 100)
                last = await writer.close()
                reader = await client.open(writer.ledger_id)
                assert len(await reader.read(0, last)) == last + 1
                while last not in (held := await reader.entries_on("b")):
                    await asyncio.sleep(0.01)
                assert 0 in held
                assert hole not in held, "what was confirmed without it stays missing"
                assert writer.ensemble_changes == 0
            finally:
                await again.stop()

    run(main())
