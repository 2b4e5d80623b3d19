"""Damaged copies are replaced on their bookies from intact ones, and what has no intact copy stays as it is and listed."""

from __future__ import annotations

import pytest

from tests.unit.autorecovery.recovery_rig import PROMPT, absent_copies, is_marked, lose, repair, write_ledger
from tests.unit.client.cluster import FakeCluster, fake_cluster, run
from triplicate.autorecovery import LedgerChecker, RepairOutcome, mark_copies, recover_bookies
from triplicate.metadata import ReplicationLock, UnderreplicationManager
from triplicate.metadata.damaged_copies import DamagedCopies, DamagedCopiesRecords
from triplicate.wire import AddRequest, ReadRequest, Request


def flip(cluster: FakeCluster, bookie_id: str, ledger_id: int, entry_id: int) -> bytes:
    """Flip a bit of one copy; returns the intact copy."""
    entries = cluster[bookie_id].ledgers[ledger_id].entries
    intact = entries[entry_id]
    entries[entry_id] = intact[:-1] + bytes([intact[-1] ^ 1])
    return intact


def added(cluster: FakeCluster, bookie_id: str) -> list[int]:
    return sorted(request.entry_id for request in cluster[bookie_id].seen if isinstance(request, AddRequest))


async def record(cluster: FakeCluster, ledger_id: int) -> dict[str, tuple[range, ...]]:
    found = await cluster.metadata.damaged_copies.get(ledger_id)
    return {} if found is None else dict(found.copies)


@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 2, 2)])
def test_a_recorded_copy_is_replaced_on_its_bookie(sizes: tuple[int, int, int]) -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 60, sizes=sizes)
            await cluster.settled(ledger_id, 59, copies=sizes[1])
            before = await cluster.metadata.ledgers.get(ledger_id)
            bookie_id = before.value.ensemble_of(30)[30 % 3]
            intact = flip(cluster, bookie_id, ledger_id, 30)
            cluster[bookie_id].seen.clear()
            await cluster.metadata.damaged_copies.report(ledger_id, bookie_id, [range(30, 31)])
            repaired = await repair(client, ledger_id, bookie_id)
            assert (repaired.outcome, repaired.entries, repaired.fragments) == (RepairOutcome.REPAIRED, 1, 1)
            assert added(cluster, bookie_id) == [30], "copies that are not recorded are not written again"
            assert cluster[bookie_id].ledgers[ledger_id].entries[30] == intact
            assert await cluster.metadata.ledgers.get(ledger_id) == before
            assert await record(cluster, ledger_id) == {}
            assert not await is_marked(cluster, ledger_id)

    run(main())


def test_a_recorded_copy_is_replaced_although_its_bookie_delivers_it_intact() -> None:
    """A bookie that answers from memory does not show the damage on its disk."""

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 20)
            await cluster.settled(ledger_id, 19)
            cluster["b"].seen.clear()
            await cluster.metadata.damaged_copies.report(ledger_id, "b", [range(7, 9)])
            repaired = await repair(client, ledger_id, "b")
            assert (repaired.outcome, repaired.entries) == (RepairOutcome.REPAIRED, 2)
            assert added(cluster, "b") == [7, 8]
            requests = [request for request in cluster["b"].seen if isinstance(request, AddRequest | ReadRequest)]
            assert isinstance(requests[0], AddRequest), "the record is the evidence"
            assert await record(cluster, ledger_id) == {}

    run(main())


def test_a_recorded_copy_that_only_its_own_bookie_delivers_intact_is_stored_there_again() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 20)
            await cluster.settled(ledger_id, 19)
            flip(cluster, "a", ledger_id, 7)
            flip(cluster, "c", ledger_id, 7)
            cluster["b"].seen.clear()
            await cluster.metadata.damaged_copies.report(ledger_id, "b", [range(7, 8)])
            repaired = await repair(client, ledger_id, "b")
            assert repaired.outcome is RepairOutcome.REPAIRED
            assert added(cluster, "b") == [7], "from the memory of the bookie to its disk"
            assert absent_copies(cluster, ledger_id, await cluster.metadata_of(ledger_id)) == [], (
                "the others were read, and replaced as well"
            )

    run(main())


def test_damage_that_is_recorded_during_the_repair_is_replaced_in_it() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 20)
            await cluster.settled(ledger_id, 19)
            cluster["b"].seen.clear()
            await cluster.metadata.damaged_copies.report(ledger_id, "b", [range(7, 8)])
            delete, deletions = DamagedCopiesRecords.delete, 0

            async def late(self: DamagedCopiesRecords, found: DamagedCopies) -> bool:
                nonlocal deletions
                deletions += 1
                if deletions == 1:
                    await self.report(ledger_id, "b", [range(12, 13)])
                return await delete(self, found)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(DamagedCopiesRecords, "delete", late)
                assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            assert set(added(cluster, "b")) == {7, 12}
            assert await record(cluster, ledger_id) == {}

    run(main())


def test_a_copy_that_is_found_damaged_during_a_copy_is_replaced_as_well() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 60)
            await cluster.settled(ledger_id, 59)
            await cluster.add("d")
            await lose(cluster, "b")
            for entry_id in (10, 41):
                flip(cluster, "a", ledger_id, entry_id)
            for entry_id in (20, 51):
                flip(cluster, "c", ledger_id, entry_id)
            cluster["a"].seen.clear()
            cluster["c"].seen.clear()
            repaired = await repair(client, ledger_id, "b")
            assert repaired.outcome is RepairOutcome.REPAIRED
            replaced = added(cluster, "a") + added(cluster, "c")
            assert set(replaced) <= {10, 20, 41, 51}
            assert replaced, "at least one bookie was read"
            assert await record(cluster, ledger_id) == {}

    run(main())


def test_an_entry_without_an_intact_copy_is_named_and_stays_listed() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 20)
            await cluster.settled(ledger_id, 19)
            before = await cluster.metadata.ledgers.get(ledger_id)
            ensemble = before.value.last_segment.ensemble
            for bookie_id in ensemble:
                flip(cluster, bookie_id, ledger_id, 7)
            stored = {bookie_id: dict(cluster[bookie_id].ledgers[ledger_id].entries) for bookie_id in ensemble}
            await cluster.metadata.damaged_copies.report(ledger_id, ensemble[0], [range(7, 8)])
            for _ in range(2):
                report = await recover_bookies(client, settings=PROMPT)
                (failed,) = report.unrepaired
                assert (failed.ledger_id, failed.outcome) == (ledger_id, RepairOutcome.FAILED)
                assert f"entry 7 of ledger {ledger_id} has no intact copy: it should be on" in failed.reason
                assert all(bookie_id in failed.reason for bookie_id in ensemble)
                assert await cluster.metadata.ledgers.get(ledger_id) == before
                assert {bookie_id: dict(cluster[bookie_id].ledgers[ledger_id].entries) for bookie_id in ensemble} == stored
                assert await is_marked(cluster, ledger_id)
                assert await record(cluster, ledger_id) == dict.fromkeys(sorted(ensemble), (range(7, 8),))

    run(main())


def test_a_fragment_whose_bookie_keeps_damaged_copies_moves() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 20)
            await cluster.settled(ledger_id, 19)
            await cluster.add("d")
            flip(cluster, "b", ledger_id, 7)
            bad = cluster["b"].ledgers[ledger_id].entries[7]

            def keep(request: Request) -> None:
                if isinstance(request, ReadRequest):
                    cluster["b"].ledgers[ledger_id].entries[7] = bad

            cluster["b"].rules.append(keep)
            await cluster.metadata.damaged_copies.report(ledger_id, "b", [range(7, 8)])
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            metadata = await cluster.metadata_of(ledger_id)
            assert set(metadata.last_segment.ensemble) == set("acd")
            assert absent_copies(cluster, ledger_id, metadata) == []
            assert await record(cluster, ledger_id) == {}

    run(main())


def test_damaged_copies_of_a_read_only_bookie_move() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 20)
            await cluster.settled(ledger_id, 19)
            await cluster.add("d")
            flip(cluster, "b", ledger_id, 7)
            await cluster.set_readonly("b", True)
            await cluster.metadata.damaged_copies.report(ledger_id, "b", [range(7, 8)])
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            assert set((await cluster.metadata_of(ledger_id)).last_segment.ensemble) == set("acd")

    run(main())


def test_a_damaged_copy_of_an_open_ledger_is_replaced_without_a_fence() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create(ensemble_size=3, write_quorum=3, ack_quorum=2, password=b"secret")
            for number in range(20):
                await writer.append(b"entry %d" % number)
            ledger_id = writer.ledger_id
            await cluster.settled(ledger_id, 19)
            intact = flip(cluster, "b", ledger_id, 7)
            await cluster.metadata.damaged_copies.report(ledger_id, "b", [range(7, 8)])
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            assert cluster["b"].ledgers[ledger_id].entries[7] == intact
            assert cluster.fenced(ledger_id) == []
            await writer.append(b"the writer goes on")
            await writer.close()

    run(main())


def test_a_check_that_reads_has_damaged_copies_replaced() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 20)
            await cluster.settled(ledger_id, 19)
            intact = flip(cluster, "b", ledger_id, 7)
            assert await mark_copies(client, await LedgerChecker(client, ledger_id, 10.0, read=True).check()) == ("b",)
            report = await recover_bookies(client, settings=PROMPT)
            assert report.unrepaired == ()
            assert cluster["b"].ledgers[ledger_id].entries[7] == intact

    run(main())


def test_damage_is_repaired_although_another_worker_deleted_the_mark() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 20)
            await cluster.settled(ledger_id, 19)
            intact = flip(cluster, "b", ledger_id, 7)
            await cluster.metadata.damaged_copies.report(ledger_id, "b", [range(7, 8)])
            assert (await recover_bookies(client, settings=PROMPT)).unrepaired == ()
            assert cluster["b"].ledgers[ledger_id].entries[7] == intact
            assert await record(cluster, ledger_id) == {}

    run(main())


def test_damage_recorded_while_its_mark_is_deleted_is_marked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrubber adds nothing to a mark that names its bookie already, and the worker has looked for damage before."""
    complete = UnderreplicationManager.complete

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 10)
            await cluster.settled(ledger_id, 9)

            async def later(marks: UnderreplicationManager, lock: ReplicationLock) -> bool:
                flip(cluster, "a", ledger_id, 4)
                await cluster.metadata.damaged_copies.report(ledger_id, "a", [range(4, 5)])
                await marks.mark(ledger_id, ["a"])
                return await complete(marks, lock)

            monkeypatch.setattr(UnderreplicationManager, "complete", later)
            assert (await repair(client, ledger_id, "a")).outcome is RepairOutcome.MARKED_AGAIN
            assert await is_marked(cluster, ledger_id)
            monkeypatch.undo()
            assert (await repair(client, ledger_id, "a")).outcome is RepairOutcome.REPAIRED
            assert absent_copies(cluster, ledger_id, await cluster.metadata_of(ledger_id)) == []
            assert await record(cluster, ledger_id) == {}

    run(main())


def test_the_record_of_a_deleted_ledger_is_deleted() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            await cluster.metadata.damaged_copies.report(77, "b", [range(7, 8)])
            assert (await recover_bookies(client, settings=PROMPT)).unrepaired == ()
            assert await record(cluster, 77) == {}

    run(main())
