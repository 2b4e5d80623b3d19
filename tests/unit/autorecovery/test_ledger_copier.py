"""Copies of one fragment's entries to one bookie."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.autorecovery.recovery_rig import is_marked, ledger_that_lacks_b, lose, repair, write_ledger
from tests.unit.client.cluster import FakeCluster, fake_cluster, run
from triplicate.autorecovery import RepairOutcome
from triplicate.autorecovery.ledger_copier import READS_AT_ONCE
from triplicate.autorecovery.ledger_repair import RepairRun
from triplicate.client import Client
from triplicate.wire import AddRequest, BatchReadRequest, ReadRequest, Request, Status

STRIPED_ENTRIES = 600


def test_a_target_that_forgets_an_entry_is_found_out() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 20)
            await cluster.settled(ledger_id, 19)
            before = await cluster.metadata.ledgers.get(ledger_id)
            target = await cluster.add("d")

            def forget(request: Request) -> None:
                """Entry 7 is acknowledged, and gone when the next one comes."""
                if isinstance(request, AddRequest) and ledger_id in target.ledgers:
                    target.ledgers[ledger_id].entries.pop(7, None)

            target.rules.append(forget)
            await lose(cluster, "b")
            repaired = await repair(client, ledger_id, "b")
            assert repaired.outcome is RepairOutcome.FAILED
            assert "failed during this repair: d" in repaired.reason
            assert await cluster.metadata.ledgers.get(ledger_id) == before
            assert await is_marked(cluster, ledger_id)
            assert "does not list entry 7" in str(cluster.told("autorecovery.target_failed"))

    run(main())


def test_copies_that_were_lost_before_they_were_named_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker pauses, and meanwhile the target's disks are replaced and its ledgers checked: none of them named it for this one."""

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await ledger_that_lacks_b(cluster, client, 20)
            name_targets = RepairRun._name_targets

            async def pause(run: RepairRun, *args: Any, **options: Any) -> None:
                if not paused:
                    paused.append(True)
                    cluster["d"].ledgers.clear()
                    await cluster.metadata.incarnations.begin_next("d", 100)
                    await cluster.metadata.incarnations.mark_visited("d")
                await name_targets(run, *args, **options)

            paused: list[bool] = []
            monkeypatch.setattr(RepairRun, "_name_targets", pause)
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            assert paused
            assert cluster["d"].ledgers[ledger_id].entries == cluster["a"].ledgers[ledger_id].entries
            assert cluster.told("autorecovery.target_lost_its_disks")

    run(main())


def test_entries_are_read_in_batches_around_a_damaged_one() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await ledger_that_lacks_b(cluster, client, 300)
            for number, name in enumerate("ac"):
                entries = cluster[name].ledgers[ledger_id].entries
                damaged = 150 + number
                entries[damaged] = entries[damaged][:-1] + bytes([entries[damaged][-1] ^ 1])
            cluster["a"].seen.clear()
            cluster["c"].seen.clear()
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            seen = cluster["a"].seen + cluster["c"].seen
            assert any(isinstance(request, BatchReadRequest) for request in seen)
            assert sum(isinstance(request, ReadRequest) for request in seen) < 100
            right = {**cluster["a"].ledgers[ledger_id].entries, 150: cluster["c"].ledgers[ledger_id].entries[150]}
            assert cluster["d"].ledgers[ledger_id].entries == right

    run(main())


def test_the_copies_share_the_reads() -> None:
    """The size of the entries follows from the metadata, so that not even the first ones are read one by one."""

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await ledger_that_lacks_b(cluster, client, 1000)
            for name in "ac":
                cluster[name].seen.clear()
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            assert cluster["d"].ledgers[ledger_id].entries == cluster["a"].ledgers[ledger_id].entries
            batches = {name: sum(isinstance(request, BatchReadRequest) for request in cluster[name].seen) for name in "ac"}
            assert abs(batches["a"] - batches["c"]) <= 1
            assert sum(batches.values()) < 40
            assert not any(isinstance(request, ReadRequest) for name in "ac" for request in cluster[name].seen)

    run(main())


def test_bookies_without_batch_reads_are_read_entry_by_entry() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await ledger_that_lacks_b(cluster, client, 200)
            for name in "ac":
                cluster[name].knows_batches = False
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            assert cluster["d"].ledgers[ledger_id].entries == cluster["a"].ledgers[ledger_id].entries

    run(main())


def test_a_bookie_that_fails_is_read_from_last() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await ledger_that_lacks_b(cluster, client, 300)
            cluster["a"].when(ReadRequest, Status.IO_ERROR)
            cluster["a"].when(BatchReadRequest, Status.IO_ERROR)
            cluster["a"].seen.clear()
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            assert len(cluster["a"].seen) <= 130, "one read of each lane at most, and its batch"

    run(main())


async def striped_ledger_that_lacks_a(cluster: FakeCluster, client: Client) -> tuple[int, dict[str, dict[int, bytes]]]:
    """A closed ledger with two copies over four bookies, one of which dies for good. Returns its id and the entries by bookie."""
    ledger_id = await write_ledger(client, STRIPED_ENTRIES, sizes=(4, 2, 2))
    await cluster.settled(ledger_id, STRIPED_ENTRIES - 1, copies=2)
    await cluster.add("e")
    copies = {name: dict(cluster[name].ledgers[ledger_id].entries) for name in "abcd"}
    await lose(cluster, "a")
    for name in "bcd":
        cluster[name].seen.clear()
    return ledger_id, copies


def test_the_sources_of_a_striped_fragment_get_each_entry_asked_for_once() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id, copies = await striped_ledger_that_lacks_a(cluster, client)
            assert (await repair(client, ledger_id, "a")).outcome is RepairOutcome.REPAIRED
            assert cluster["e"].ledgers[ledger_id].entries == copies["a"]
            reads = [request for name in "bcd" for request in cluster[name].seen if isinstance(request, ReadRequest)]
            assert sorted(request.entry_id for request in reads) == sorted(copies["a"])

    run(main())


def test_a_damaged_copy_of_a_striped_fragment_is_not_used_and_the_entry_is_named() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id, copies = await striped_ledger_that_lacks_a(cluster, client)
            damaged = sorted(copies["a"])[STRIPED_ENTRIES // 4]
            for name in "bcd":
                entries = cluster[name].ledgers[ledger_id].entries
                if damaged in entries:
                    entries[damaged] = entries[damaged][:-1] + bytes([entries[damaged][-1] ^ 1])
            repaired = await repair(client, ledger_id, "a")
            assert repaired.outcome is RepairOutcome.FAILED
            assert f"entry {damaged} " in repaired.reason
            assert await is_marked(cluster, ledger_id)

    run(main())


def test_a_bookie_that_fails_its_reads_of_a_striped_fragment_is_read_from_last() -> None:
    async def main() -> None:
        async with fake_cluster("abcde") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, STRIPED_ENTRIES, sizes=(5, 3, 2))
            await cluster.settled(ledger_id, STRIPED_ENTRIES - 1)
            copies = dict(cluster["a"].ledgers[ledger_id].entries)
            await cluster.add("f")
            await lose(cluster, "a")
            cluster["b"].when(ReadRequest, Status.IO_ERROR)
            cluster["b"].seen.clear()
            assert (await repair(client, ledger_id, "a")).outcome is RepairOutcome.REPAIRED
            assert cluster["f"].ledgers[ledger_id].entries == copies
            asked = sum(isinstance(request, ReadRequest) for request in cluster["b"].seen)
            assert asked <= 2 * READS_AT_ONCE, "the first read of each lane, and the groups that were under way, at most"

    run(main())
