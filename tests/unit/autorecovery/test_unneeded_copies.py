"""Copies that no ledger needs any more, on real bookies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from tests.unit.autorecovery.recovery_rig import repair, write_ledger
from tests.unit.client.cluster import run
from tests.unit.client.real_cluster import RealCluster, real_cluster
from triplicate.autorecovery import LedgerChecker, RepairOutcome, UnneededCopies, UnneededReport
from triplicate.bookie import Bookie
from triplicate.client import Client
from triplicate.ledger import EntryCodec

ENTRIES = 50


@dataclass
class Moved:
    """A ledger of three bookies whose copies on `left` were made again on `right`, while `left` was away."""

    cluster: RealCluster
    client: Client
    ledger_id: int
    left: str
    right: str

    @property
    def bookie(self) -> Bookie:
        return self.cluster.bookies[self.left]

    def rounds(self) -> UnneededCopies:
        return UnneededCopies(self.client, self.left, self.bookie.storage, 3600.0)

    async def stored(self) -> int:
        """Number of entries of the ledger on `left`."""
        async with self.client.bookie_copies() as copies:
            return (await copies.listed(self.ledger_id, self.left)).count


async def flushed(bookie: Bookie) -> None:
    await bookie.storage.flush()


@asynccontextmanager
async def moved(*, fenced: bool = False) -> AsyncIterator[Moved]:
    async with real_cluster("abcd") as cluster, cluster.client() as client:
        ledger_id = await write_ledger(client, ENTRIES, sizes=(3, 3, 3), close=not fenced)
        if fenced:
            async with await client.recover(ledger_id, password=b"secret"):
                """Its bookies are fenced, and stay so."""
        before = (await client.metadata_of(ledger_id)).segments[0].ensemble
        left = before[0]
        settings = cluster.bookies[left].settings
        await cluster.bookies[left].stop()
        assert (await repair(client, ledger_id, left)).outcome is RepairOutcome.REPAIRED
        (right,) = set((await client.metadata_of(ledger_id)).segments[0].ensemble) - set(before)
        cluster.bookies[left] = bookie = await Bookie.start(cluster.host, settings, cluster.metadata)
        try:
            await flushed(bookie)
            yield Moved(cluster, client, ledger_id, left, right)
        finally:
            await cluster.bookies[left].stop()


def test_copies_of_a_bookie_that_came_back_are_deleted_in_the_second_round() -> None:
    async def main() -> None:
        async with moved() as rig:
            rounds = rig.rounds()
            assert await rounds.run_round() == UnneededReport(held=1, unneeded=1, deleted=(), kept=())
            assert await rig.stored() == ENTRIES
            assert await rounds.run_round() == UnneededReport(held=1, unneeded=1, deleted=(rig.ledger_id,), kept=())
            assert await rig.stored() == 0
            checked = await LedgerChecker(rig.client, rig.ledger_id, 10.0, read=True).check()
            assert checked.is_complete
            assert await rig.cluster.metadata.under_replication.worker_of(rig.ledger_id) is None, "the lock is released"
            third = await rounds.run_round()
            assert (third.unneeded, third.deleted) == (0, ())

    run(main())


@pytest.mark.parametrize("fenced", [False, True])
def test_a_bookie_whose_copies_were_deleted_accepts_them_again_from_a_worker(fenced: bool) -> None:
    async def main() -> None:
        async with moved(fenced=fenced) as rig:
            rounds = rig.rounds()
            await rounds.run_round()
            await rounds.run_round()
            assert await rig.stored() == 0
            await rig.cluster.bookies[rig.right].stop()
            assert (await repair(rig.client, rig.ledger_id, rig.right)).outcome is RepairOutcome.REPAIRED
            assert await rig.stored() == ENTRIES
            checked = await LedgerChecker(rig.client, rig.ledger_id, 10.0, read=True).check()
            assert checked.is_complete
            await flushed(rig.bookie)
            for _ in range(3):
                assert (await rounds.run_round()).deleted == ()
            assert await rig.stored() == ENTRIES

    run(main())


def test_copies_stay_while_a_bookie_that_the_metadata_name_lacks_an_entry() -> None:
    async def main() -> None:
        async with moved() as rig:
            await rig.cluster.bookies[rig.right].storage.delete_ledgers([rig.ledger_id])
            rounds = rig.rounds()
            await rounds.run_round()
            for _ in range(2):
                assert await rounds.run_round() == UnneededReport(held=1, unneeded=1, deleted=(), kept=(rig.ledger_id,))
            assert await rig.stored() == ENTRIES

    run(main())


def test_copies_stay_while_a_bookie_that_the_metadata_name_is_silent() -> None:
    async def main() -> None:
        async with moved() as rig:
            await rig.cluster.bookies[rig.right].stop()
            rounds = rig.rounds()
            await rounds.run_round()
            assert (await rounds.run_round()).kept == (rig.ledger_id,)
            assert await rig.stored() == ENTRIES

    run(main())


async def _marked(rig: Moved) -> None:
    await rig.cluster.metadata.under_replication.mark(rig.ledger_id, [rig.right])


async def _locked(rig: Moved) -> None:
    async with rig.cluster.client() as other:
        assert await other.metadata.under_replication.lock_unmarked(rig.ledger_id, "a worker") is not None


@pytest.mark.parametrize("busy", [_marked, _locked])
def test_copies_of_a_ledger_that_a_worker_may_repair_stay(busy: Callable[[Moved], Awaitable[None]]) -> None:
    async def main() -> None:
        async with moved() as rig:
            rounds = rig.rounds()
            await rounds.run_round()
            await busy(rig)
            assert (await rounds.run_round()).kept == (rig.ledger_id,)
            assert await rig.stored() == ENTRIES

    run(main())


def test_copies_to_which_entries_were_added_between_two_rounds_stay_for_another_one() -> None:
    """As tools that take no locks add them before they change the metadata."""

    async def main() -> None:
        async with moved() as rig:
            rounds = rig.rounds()
            await rounds.run_round()
            metadata = await rig.client.metadata_of(rig.ledger_id)
            codec = EntryCodec(rig.ledger_id, metadata.digest_type, metadata.password)
            async with rig.client.bookie_copies() as copies:
                body = await copies.read(codec, 3, rig.right)
                assert body is not None
                stream = copies.open_stream(codec, rig.left)
                await stream.add(3, body)
                stream.close()
            assert (await rounds.run_round()).deleted == (), "it is in the write cache"
            await flushed(rig.bookie)
            assert (await rounds.run_round()).deleted == (), "it was not there in the last round"
            assert (await rounds.run_round()).deleted == (rig.ledger_id,)

    run(main())


def test_copies_of_a_named_bookie_and_of_open_ledgers_stay() -> None:
    async def main() -> None:
        async with real_cluster("abc") as cluster, cluster.client() as client:
            ledgers = [await write_ledger(client, ENTRIES, sizes=(3, 3, 3), close=close) for close in (True, False)]
            bookie = cluster.bookies["b"]
            await flushed(bookie)
            rounds = UnneededCopies(client, "b", bookie.storage, 3600.0)
            for _ in range(3):
                assert await rounds.run_round() == UnneededReport(held=2, unneeded=0, deleted=(), kept=())
            async with client.bookie_copies() as copies:
                assert [(await copies.listed(ledger_id, "b")).count for ledger_id in ledgers] == [ENTRIES, ENTRIES]

    run(main())
