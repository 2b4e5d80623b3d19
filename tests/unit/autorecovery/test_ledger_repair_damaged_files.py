"""Damage that keeps a real bookie from reading its own files is found by a check with reads, and repaired from the other copies."""

from __future__ import annotations

from tests.unit.autorecovery.recovery_rig import repair, write_ledger
from tests.unit.client.cluster import run
from tests.unit.client.real_cluster import RealCluster, real_cluster
from triplicate.autorecovery import LedgerChecker, LedgerCopies, RepairOutcome, mark_copies
from triplicate.client import Client


async def checked(client: Client, ledger_id: int) -> LedgerCopies:
    return await LedgerChecker(client, ledger_id, 10.0, read=True).check()


async def flip(cluster: RealCluster, bookie_id: str, ledger_id: int) -> None:
    """Flip a byte of the header of the run with the ledger's first entry, which the bookie has not read before."""
    bookie = cluster.bookies[bookie_id]
    await bookie.storage.flush()
    log, block = bookie.storage.stored.index.runs_holding(ledger_id, 0)[0]
    with open(bookie.storage.stored._paths[log], "r+b") as file:
        file.seek(block.offset + 20)
        byte = file.read(1)[0]
        file.seek(block.offset + 20)
        file.write(bytes([byte ^ 0xFF]))


def test_a_run_with_a_damaged_header_is_found_and_its_entries_are_stored_again() -> None:
    async def main() -> None:
        async with real_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 50, sizes=(3, 3, 3))
            await flip(cluster, "b", ledger_id)
            copies = await checked(client, ledger_id)
            assert {one.bookie_id: len(one.bad) for one in copies.bookies} == {"a": 0, "b": 50, "c": 0}
            assert await mark_copies(client, copies) == ("b",)
            found = await repair(client, ledger_id, "b")
            assert (found.outcome, found.entries) == (RepairOutcome.REPAIRED, 50)
            assert (await checked(client, ledger_id)).is_complete
            assert await cluster.metadata.under_replication.get(ledger_id) is None
            await cluster.bookies["b"].storage.flush()
            assert (await checked(client, ledger_id)).is_complete, "from the disk, too"

    run(main())


def test_want_of_memory_is_no_damage() -> None:
    """A bookie that has no room for another ledger answered an I/O error, as for a damaged file."""

    async def main() -> None:
        async with real_cluster("a") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 1, sizes=(1, 1, 1))
            storage = cluster.bookies["a"].storage
            await storage.flush()
            storage.ledgers._handles.clear()
            storage.ledgers.has_room = lambda: False  # type: ignore[method-assign]
            copies = await checked(client, ledger_id)
            assert "TOO_MANY_REQUESTS" in copies.bookies[0].silence
            assert copies.bookies[0].bad == ()

    run(main())
