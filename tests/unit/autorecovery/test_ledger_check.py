"""The check finds missing, damaged and unknown copies without changing the ledger, and marks them on request."""

from __future__ import annotations

import asyncio

from tests.unit.client.cluster import FakeCluster, fake_cluster, run
from triplicate.autorecovery import CopiesOnBookie, LedgerChecker, LedgerCopies, mark_copies
from triplicate.client import Client
from triplicate.config import ClientSettings
from triplicate.ledger import DigestType
from triplicate.wire import ListEntriesRequest, ReadRequest, Status

PATIENT = ClientSettings()
"""The time limits of the checks are tested, not those of requests."""

ENTRIES = 20


async def closed_ledger(cluster: FakeCluster, client: Client, digest_type: DigestType = DigestType.CRC32C, password: bytes = b"") -> int:
    writer = await client.create(digest_type=digest_type, password=password)
    for number in range(ENTRIES):
        await writer.append(b"entry %d" % number)
    await writer.close()
    await cluster.settled(writer.ledger_id, ENTRIES - 1)
    return writer.ledger_id


def on(copies: LedgerCopies, bookie_id: str) -> CopiesOnBookie:
    return next(one for one in copies.bookies if one.bookie_id == bookie_id)


def test_a_complete_ledger_passes_and_is_not_fenced() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            ledger_id = await closed_ledger(cluster, client, DigestType.HMAC, b"secret")
            read: list[int] = []
            for reads in (False, True):
                copies = await LedgerChecker(client, ledger_id, 5.0, read=reads, progress=read.append).check()
                assert copies.is_complete
                assert await mark_copies(client, copies) == ()
            assert sum(read) == 3 * ENTRIES
            assert cluster.fenced(ledger_id) == []

    run(body())


def test_a_copy_that_is_gone_is_found_and_marked() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            ledger_id = await closed_ledger(cluster, client)
            del cluster["b"].ledgers[ledger_id].entries[7]
            copies = await LedgerChecker(client, ledger_id, 5.0).check()
            assert on(copies, "b").missing == (range(7, 8),)
            assert copies.without_copy == ()
            assert await mark_copies(client, copies) == ("b",)
            mark = await cluster.metadata.under_replication.get(ledger_id)
            assert mark is not None
            assert mark.missing == ("b",)

    run(body())


def test_a_flipped_bit_is_found_by_reading_only() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            ledger_id = await closed_ledger(cluster, client)
            cluster["c"].when(ReadRequest, "damage", entry_id=3)
            assert (await LedgerChecker(client, ledger_id, 5.0).check()).is_complete
            copies = await LedgerChecker(client, ledger_id, 5.0, read=True).check()
            assert on(copies, "c").bad == (3,)
            assert await mark_copies(client, copies) == ("c",)

    run(body())


def test_copies_that_a_bookie_cannot_read_are_damaged_also_where_it_cannot_list_them() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            ledger_id = await closed_ledger(cluster, client)
            cluster["c"].when(ReadRequest, Status.IO_ERROR, entry_id=3)
            assert (await LedgerChecker(client, ledger_id, 5.0).check()).is_complete
            copies = await LedgerChecker(client, ledger_id, 5.0, read=True).check()
            assert (on(copies, "c").bad, on(copies, "c").silence) == ((3,), "")
            cluster["c"].when(ListEntriesRequest, Status.IO_ERROR)
            assert on(await LedgerChecker(client, ledger_id, 5.0).check(), "c").bad == (3,), "without a list, its copies are read"
            assert await mark_copies(client, copies) == ("c",)
            record = await cluster.metadata.damaged_copies.get(ledger_id)
            assert record is not None
            assert record.copies == {"c": (range(3, 4),)}

    run(body())


def test_a_silent_bookie_is_marked_only_if_it_is_not_registered() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            ledger_id = await closed_ledger(cluster, client)
            for kind in (ListEntriesRequest, ReadRequest):
                cluster["a"].when(kind, "drop")
            copies = await LedgerChecker(client, ledger_id, 1.0).check()
            assert on(copies, "a").silence == "no answer within 1 s"
            assert not copies.is_complete
            assert await mark_copies(client, copies) == ()
            await cluster["a"].stop()
            await cluster.metadata.bookies.unregister("a")
            copies = await LedgerChecker(client, ledger_id, 5.0).check()
            assert on(copies, "a").silence
            assert await mark_copies(client, copies) == ("a",)

    run(body())


def test_an_open_ledger_waits_for_the_last_copies_of_confirmed_entries() -> None:
    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client(PATIENT) as client:
            writer = await client.create()
            for _ in range(3):
                await writer.append(b"x")
            await cluster.settled(writer.ledger_id, 2)
            entries = cluster["a"].ledgers[writer.ledger_id].entries
            late = entries.pop(1)
            checking = asyncio.ensure_future(LedgerChecker(client, writer.ledger_id, 5.0).check())
            await asyncio.sleep(0.3)
            entries[1] = late
            copies = await checking
            assert copies.is_complete
            assert not copies.is_closed
            assert await writer.append(b"x") == 3

    run(body())
