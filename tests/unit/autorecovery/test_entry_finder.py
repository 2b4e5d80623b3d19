"""Bookies that give no lists of entries: their copies are found by reading them."""

from __future__ import annotations

import pytest

from tests.unit.autorecovery.recovery_rig import absent_copies, is_marked, ledger_that_lacks_b, lose, repair, write_ledger
from tests.unit.client.cluster import FakeBookie, fake_cluster, run
from triplicate.autorecovery import LedgerChecker, RepairOutcome
from triplicate.autorecovery.entry_finder import availability_of
from triplicate.wire import AddRequest, ListEntriesRequest, ReadRequest, Request

ENTRIES = 40


def lists_asked(bookie: FakeBookie) -> int:
    return sum(isinstance(request, ListEntriesRequest) for request in bookie.seen)


def flip_last_bit(bookie: FakeBookie, ledger_id: int, entry_id: int) -> None:
    body = bookie.ledgers[ledger_id].entries[entry_id]
    bookie.ledgers[ledger_id].entries[entry_id] = body[:-1] + bytes([body[-1] ^ 1])


def test_a_target_without_lists_is_verified_by_reads_and_asked_for_a_list_once() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_ids = [await write_ledger(client, ENTRIES) for _ in range(2)]
            for ledger_id in ledger_ids:
                await cluster.settled(ledger_id, ENTRIES - 1)
            target = await cluster.add("d")
            target.when(ListEntriesRequest, "drop")
            await lose(cluster, "b")
            for ledger_id in ledger_ids:
                assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
                metadata = await cluster.metadata_of(ledger_id)
                assert set(metadata.last_segment.ensemble) == set("acd")
                assert absent_copies(cluster, ledger_id, metadata) == []
                read = {request.entry_id for request in target.seen if isinstance(request, ReadRequest) and request.ledger_id == ledger_id}
                assert read == set(range(ENTRIES))
            assert lists_asked(target) == 1

    run(main())


def test_a_target_without_lists_that_forgets_an_entry_is_found_out() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 20)
            await cluster.settled(ledger_id, 19)
            before = await cluster.metadata.ledgers.get(ledger_id)
            target = await cluster.add("d")
            target.when(ListEntriesRequest, "drop")

            def forget(request: Request) -> None:
                """Entry 7 is acknowledged, and gone when the next one comes."""
                if isinstance(request, AddRequest) and ledger_id in target.ledgers:
                    target.ledgers[ledger_id].entries.pop(7, None)

            target.rules.append(forget)
            await lose(cluster, "b")
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.FAILED
            assert await cluster.metadata.ledgers.get(ledger_id) == before
            assert await is_marked(cluster, ledger_id)
            assert "does not deliver entry 7" in str(cluster.told("autorecovery.target_failed"))

    run(main())


def test_a_target_that_answers_nothing_gets_no_copies() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await ledger_that_lacks_b(cluster, client, 5)
            for kind in (ListEntriesRequest, ReadRequest):
                cluster["d"].when(kind, "drop")
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.FAILED
            assert not any(isinstance(request, AddRequest) for request in cluster["d"].seen)

    run(main())


def test_a_present_bookie_without_lists_gets_damaged_and_missing_entries_again() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, ENTRIES)
            await cluster.settled(ledger_id, ENTRIES - 1)
            cluster["b"].when(ListEntriesRequest, "drop")
            flip_last_bit(cluster["b"], ledger_id, 3)
            del cluster["b"].ledgers[ledger_id].entries[9]
            repaired = await repair(client, ledger_id, "b")
            assert (repaired.outcome, repaired.entries) == (RepairOutcome.REPAIRED, 2)
            assert cluster["b"].ledgers[ledger_id].entries == cluster["a"].ledgers[ledger_id].entries

    run(main())


@pytest.mark.parametrize("reads", [False, True])
def test_a_check_reads_the_copies_of_a_bookie_without_lists(reads: bool) -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, ENTRIES)
            await cluster.settled(ledger_id, ENTRIES - 1)
            cluster["b"].when(ListEntriesRequest, "drop")
            assert (await LedgerChecker(client, ledger_id, 5.0, read=reads).check()).is_complete
            flip_last_bit(cluster["b"], ledger_id, 3)
            del cluster["b"].ledgers[ledger_id].entries[9]
            copies = await LedgerChecker(client, ledger_id, 5.0, read=reads).check()
            found = next(one for one in copies.bookies if one.bookie_id == "b")
            assert (found.bad, found.missing, found.silence) == ((3,), (range(9, 10),), "")
            assert lists_asked(cluster["b"]) == 1

    run(main())


def test_ids_are_joined_into_runs() -> None:
    assert list(availability_of([1, 2, 3, 7, 9, 10]).runs()) == [range(1, 4), range(7, 8), range(9, 11)]
    assert availability_of([]).count == 0
