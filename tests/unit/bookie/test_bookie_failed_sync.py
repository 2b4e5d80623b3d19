"""A sync that failed is never tried again: nobody knows what it left on the disk, so the bookie ends."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.bookie.bookie_rig import NAME, RawClient, Rig, run_rig
from tests.unit.bookie.crash_rig import JOURNAL, add_all, check_all, codec
from tests.waiting import eventually
from triplicate.bookie.registration import Registration
from triplicate.ledger import DigestType, EntryCodec
from triplicate.metadata import ClusterMetadata, MemoryTree
from triplicate.metadata.core.service_info import BookieServiceInfo
from triplicate.wire import AddRequest, Status
from triplicate_simulator.cluster.simulated_cluster import JOURNAL_DIRECTORY, LEDGER_DIRECTORY


async def flushed_ledger(rig: Rig) -> None:
    codec = await rig.create_ledger(5)
    client = await rig.connect()
    assert await client.add(codec, 0) is Status.OK
    while rig.bookie.storage.ledgers.any_dirty or rig.bookie.storage.cache.active or rig.bookie.storage.cache.frozen:
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("name", ["", "/current/index.db-commits"])
def test_a_failed_sync_of_a_flush_ends_the_bookie(name: str) -> None:
    async def body(rig: Rig) -> None:
        codec = await rig.create_ledger(5)
        client = await rig.connect()
        rig.disk.failing_syncs.append(LEDGER_DIRECTORY + name)
        assert await client.add(codec, 0) is Status.OK
        async with asyncio.timeout(20):
            assert "sync failed" in str(await rig.bookie.wait_failed())
        await rig.restart()
        assert (await (await rig.connect()).read(5, 0)).status is Status.OK

    run_rig(body)


def test_a_failed_sync_of_a_deletion_ends_the_bookie() -> None:
    async def body(rig: Rig) -> None:
        await flushed_ledger(rig)
        await rig.delete_ledger(5)
        rig.disk.failing_syncs.append(LEDGER_DIRECTORY + "/current/index.db-commits")
        async with asyncio.timeout(20):
            assert "sync failed" in str(await rig.bookie.wait_failed())

    run_rig(body, gc_interval_s=3.0)


def test_a_journal_group_whose_sync_failed_is_written_again_before_the_next() -> None:
    """The next process still sees the group, and no sync of its own would ever save it; then the power goes."""

    async def body(rig: Rig) -> None:
        codec = EntryCodec(5, DigestType.CRC32C, b"")
        client = await rig.connect()
        assert await client.add(codec, 0) is Status.OK
        rig.disk.failing_syncs.append(JOURNAL_DIRECTORY)
        client.send(AddRequest(5, 1, codec.master_key, codec.encode(1, 0, 2, b"x")))
        async with asyncio.timeout(20):
            assert "sync failed" in str(await rig.bookie.wait_failed())
        await rig.restart(keep_unsynced=True)
        client = await rig.connect()
        assert (await client.read(5, 1)).status is Status.OK
        assert await client.add(codec, 2) is Status.OK
        await rig.restart(keep_unsynced=False)
        client = await rig.connect()
        assert (await client.read(5, 1)).status is Status.OK
        assert (await client.read(5, 2)).status is Status.OK

    # No flush comes in between, so all of it must come from the journal.
    run_rig(body, flush_interval_s=3600.0)


def test_a_journal_that_cannot_sync_acknowledges_nothing_more() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await add_all(client, 5, 0, 2)
        rig.disk.failing_syncs.append(JOURNAL)
        client.send(AddRequest(5, 3, codec().master_key, codec().encode(3, 2, 1, b"3")))
        with pytest.raises(TimeoutError):
            await client.answer(timeout_s=5)
        assert client.closed
        assert "sync failed" in str(await rig.bookie.wait_failed())
        await asyncio.sleep(3)
        assert await rig.bookie.parts.metadata.bookies.writable() == {}
        await rig.node.stop()
        await rig.restart()
        await check_all(await rig.connect(), 5, 2)

    run_rig(body)


def test_a_bookie_whose_journal_fails_during_its_start_leaves_the_list_of_bookies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bookie listens before it is registered, so a client's add can be the first to fail."""
    register = Registration.register

    async def body(rig: Rig) -> None:
        listening: list[BookieServiceInfo] = []

        async def register_and_wait(self: Registration, info: BookieServiceInfo) -> None:
            await register(self, info)
            listening.append(info)
            await eventually(lambda: bool(rig.facts("bookie.failed")))

        rig.node.crash()
        monkeypatch.setattr(Registration, "register", register_and_wait)
        start = asyncio.ensure_future(rig.node.start())
        async with asyncio.timeout(20):
            await eventually(lambda: bool(listening))
            rig.disk.failing_syncs.append(JOURNAL_DIRECTORY)
            _, client = await rig.client_host.port.network.connect(RawClient, *listening[0].address)
            assert isinstance(client, RawClient)
            client.send(AddRequest(5, 0, codec().master_key, codec().encode(0, -1, 1, b"x")))
            await start
            assert rig.bookie.failed
            metadata = await ClusterMetadata.open(MemoryTree(rig.cluster.store), rig.client_host.port)
            while await metadata.bookies.is_registered(NAME):
                await asyncio.sleep(0.1)
            await metadata.aclose()
            await client.until_closed()
        with pytest.raises(OSError):
            await rig.connect()

    run_rig(body)
