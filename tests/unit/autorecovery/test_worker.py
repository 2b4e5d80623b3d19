"""Repairs of single ledgers by a replication worker."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.autorecovery.recovery_rig import (
    PROMPT,
    absent_copies,
    is_marked,
    ledger_that_lacks_b,
    lose,
    repair,
    worker_of,
    write_ledger,
)
from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.autorecovery import RepairOutcome, ReplicationWorker
from triplicate.client import Client
from triplicate.config import ClientSettings
from triplicate.ledger import DigestType, EnsembleSegment, LedgerState
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree, bookie_service
from triplicate.runtime import real_host
from triplicate.wire import AddRequest, BatchReadRequest, ListEntriesRequest, ReadRequest, Status


async def check_repaired(cluster: FakeCluster, ledger_id: int, lost: str) -> None:
    metadata = await cluster.metadata_of(ledger_id)
    assert not [segment for segment in metadata.segments if lost in segment.ensemble]
    assert absent_copies(cluster, ledger_id, metadata) == []
    assert not await is_marked(cluster, ledger_id)
    assert await cluster.metadata.under_replication.worker_of(ledger_id) is None


@pytest.mark.parametrize("wire", ["v2", "v3"])
@pytest.mark.parametrize("digest_type", DigestType)
def test_a_closed_ledger_gets_its_copies_on_another_bookie(digest_type: DigestType, wire: str) -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(ClientSettings(wire=wire)) as client:
            ledger_id = await write_ledger(client, 200, digest_type=digest_type)
            await cluster.settled(ledger_id, 199)
            await cluster.add("d")
            await lose(cluster, "b")
            repaired = await repair(client, ledger_id, "b")
            assert (repaired.outcome, repaired.entries, repaired.fragments) == (RepairOutcome.REPAIRED, 200, 1)
            await check_repaired(cluster, ledger_id, "b")
            assert repaired.size_bytes == sum(map(len, cluster["d"].ledgers[ledger_id].entries.values()))

    run(main())


def test_a_position_of_a_striped_ledger_gets_only_its_entries() -> None:
    async def main() -> None:
        async with fake_cluster("abcde") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 103, sizes=(5, 2, 2))
            await cluster.settled(ledger_id, 102, copies=2)
            stored = set(cluster["b"].ledgers[ledger_id].entries)
            await cluster.add("f")
            await lose(cluster, "b")
            repaired = await repair(client, ledger_id, "b")
            assert repaired.entries == len(stored)
            assert set(cluster["f"].ledgers[ledger_id].entries) == stored
            await check_repaired(cluster, ledger_id, "b")

    run(main())


def test_an_empty_ledger_needs_no_copies_but_another_bookie() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 0)
            lost = (await cluster.metadata_of(ledger_id)).last_segment.ensemble[0]
            await lose(cluster, lost)
            repaired = await repair(client, ledger_id, lost)
            assert (repaired.outcome, repaired.entries, repaired.fragments) == (RepairOutcome.REPAIRED, 0, 1)
            await check_repaired(cluster, ledger_id, lost)

    run(main())


def test_a_damaged_copy_is_not_used() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await ledger_that_lacks_b(cluster, client, 30)
            for entry_id, body in cluster["a"].ledgers[ledger_id].entries.items():
                cluster["a"].ledgers[ledger_id].entries[entry_id] = body[:-1] + bytes([body[-1] ^ 1])
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            assert cluster["d"].ledgers[ledger_id].entries == cluster["c"].ledgers[ledger_id].entries

    run(main())


def test_without_an_intact_copy_nothing_is_changed_and_the_entry_is_named() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 30)
            await cluster.settled(ledger_id, 29)
            before = await cluster.metadata.ledgers.get(ledger_id)
            await cluster.add("d")
            await lose(cluster, "b")
            del cluster["a"].ledgers[ledger_id].entries[17]
            body = cluster["c"].ledgers[ledger_id].entries[17]
            cluster["c"].ledgers[ledger_id].entries[17] = body[:-1] + bytes([body[-1] ^ 1])
            repaired = await repair(client, ledger_id, "b")
            assert repaired.outcome is RepairOutcome.FAILED
            assert f"entry 17 of ledger {ledger_id} has no intact copy: it should be on " in repaired.reason
            assert "a: has no such entry" in repaired.reason
            assert "the CRC32C digest does not match" in repaired.reason
            assert await cluster.metadata.ledgers.get(ledger_id) == before
            assert await is_marked(cluster, ledger_id)
            assert await cluster.metadata.under_replication.worker_of(ledger_id) is None

    run(main())


def test_copies_are_made_on_another_machine_or_not_at_all() -> None:
    async def main() -> None:
        async with fake_cluster("") as cluster, cluster.client() as client:
            for number, name in enumerate("abc"):
                await cluster.add(name, f"127.0.0.{number + 2}")
            ledger_id = await write_ledger(client, 3)
            await cluster.settled(ledger_id, 2)
            await cluster.add("d", "127.0.0.2")
            await cluster.add("e", "127.0.0.4")
            await lose(cluster, "b")
            repaired = await repair(client, ledger_id, "b")
            assert repaired.outcome is RepairOutcome.FAILED
            assert "needs 3 different machines for each entry" in repaired.reason
            await cluster.add("f", "127.0.0.3")
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            assert set((await cluster.metadata_of(ledger_id)).last_segment.ensemble) == set("acf")

    run(main())


def test_without_a_spare_bookie_nothing_is_changed() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 3)
            before = await cluster.metadata.ledgers.get(ledger_id)
            await lose(cluster, "b")
            repaired = await repair(client, ledger_id, "b")
            assert repaired.outcome is RepairOutcome.FAILED
            assert "no bookie for the copies of b in the segment of entries 0 to 2" in repaired.reason
            assert await cluster.metadata.ledgers.get(ledger_id) == before
            assert await is_marked(cluster, ledger_id)

    run(main())


def test_a_target_that_does_not_list_what_it_acknowledged_is_not_named() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 5)
            await cluster.settled(ledger_id, 4)
            before = await cluster.metadata.ledgers.get(ledger_id)
            forgetful = await cluster.add("d")
            forgetful.when(ListEntriesRequest, Status.NO_LEDGER)
            await lose(cluster, "b")
            repaired = await repair(client, ledger_id, "b")
            assert repaired.outcome is RepairOutcome.FAILED
            assert "failed during this repair: d" in repaired.reason
            assert await cluster.metadata.ledgers.get(ledger_id) == before
            await cluster.add("e")
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            await check_repaired(cluster, ledger_id, "b")

    run(main())


def test_a_target_that_fails_is_replaced_by_the_next() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 20)
            await cluster.settled(ledger_id, 19)
            (await cluster.add("d")).when(AddRequest, Status.IO_ERROR)
            await cluster.add("e")
            await lose(cluster, "b")
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            metadata = await cluster.metadata_of(ledger_id)
            assert set(metadata.last_segment.ensemble) == set("ace")
            await check_repaired(cluster, ledger_id, "b")

    run(main())


def test_a_change_by_another_worker_is_not_undone() -> None:
    """While b is replaced in the first segment, another worker replaces c by e in the second one."""

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 10)
            await cluster.settled(ledger_id, 9)
            found = await cluster.metadata.ledgers.get(ledger_id)
            ensemble = found.value.last_segment.ensemble
            found = await cluster.metadata.ledgers.update(
                ledger_id, replace(found.value, segments=(EnsembleSegment(0, ensemble), EnsembleSegment(5, ensemble))), found.version
            )
            target = await cluster.add("d")
            target.when(AddRequest, "hold", entry_id=3)
            await lose(cluster, "b")
            repairing = asyncio.ensure_future(repair(client, ledger_id, "b"))
            await eventually(lambda: bool(target.held))
            other = tuple("e" if name == "c" else name for name in ensemble)
            changed = replace(found.value, segments=(EnsembleSegment(0, ensemble), EnsembleSegment(5, other)))
            await cluster.metadata.ledgers.update(ledger_id, changed, found.version)
            await cluster.add("e")
            cluster["e"].ledgers[ledger_id] = cluster["c"].ledgers[ledger_id]
            target.obey()
            assert (await repairing).outcome is RepairOutcome.REPAIRED
            metadata = await cluster.metadata_of(ledger_id)
            assert metadata.segments[1].ensemble.index("e") == ensemble.index("c")
            await check_repaired(cluster, ledger_id, "b")

    run(main())


def test_a_bookie_that_came_back_whole_costs_nothing() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 10)
            before = await cluster.metadata.ledgers.get(ledger_id)
            missing = before.value.last_segment.ensemble[1]
            await eventually(lambda: len(cluster[missing].ledgers[ledger_id].entries) == 10)
            repaired = await repair(client, ledger_id, missing)
            assert (repaired.outcome, repaired.entries) == (RepairOutcome.REPAIRED, 0)
            assert await cluster.metadata.ledgers.get(ledger_id) == before
            assert not await is_marked(cluster, ledger_id)

    run(main())


def test_a_bookie_that_lacks_entries_gets_them_in_place() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 40)
            await cluster.settled(ledger_id, 39)
            before = await cluster.metadata.ledgers.get(ledger_id)
            for entry_id in (0, 7, 8, 39):
                del cluster["b"].ledgers[ledger_id].entries[entry_id]
            repaired = await repair(client, ledger_id, "b")
            assert (repaired.outcome, repaired.entries) == (RepairOutcome.REPAIRED, 4)
            assert await cluster.metadata.ledgers.get(ledger_id) == before
            await cluster.settled(ledger_id, 39)

    run(main())


def test_a_bookie_that_lacks_entries_and_accepts_none_is_replaced() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_ids = [await write_ledger(client, 40) for _ in range(2)]
            for ledger_id in ledger_ids:
                await cluster.settled(ledger_id, 39)
            await cluster.add("d")
            del cluster["b"].ledgers[ledger_ids[0]].entries[3]
            await cluster.set_readonly("b", True)
            assert (await repair(client, ledger_ids[0], "b")).outcome is RepairOutcome.REPAIRED
            await check_repaired(cluster, ledger_ids[0], "b")
            await cluster.set_readonly("b", False)
            cluster["b"].when(ListEntriesRequest, Status.UNKNOWN_LEDGER_STATE)
            assert (await repair(client, ledger_ids[1], "b")).outcome is RepairOutcome.REPAIRED
            await check_repaired(cluster, ledger_ids[1], "b")

    run(main())


def test_a_deleted_ledger_loses_its_mark() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            assert (await repair(client, 77, "b")).outcome is RepairOutcome.REPAIRED
            assert not await is_marked(cluster, 77)

    run(main())


def test_a_ledger_of_another_worker_is_left_alone() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            marks = cluster.metadata.under_replication
            await marks.mark(7, ["b"])
            lock = await marks.lock(7, "other")
            assert lock is not None
            async with worker_of(client) as worker:
                assert (await worker.repair(7)).outcome is RepairOutcome.LOCKED
                assert (await worker.repair(8)).outcome is RepairOutcome.NOT_MARKED
            await marks.release(lock)

    run(main())


def test_a_cancelled_repair_releases_its_lock_and_changes_nothing() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 30)
            await cluster.settled(ledger_id, 29)
            before = await cluster.metadata.ledgers.get(ledger_id)
            target = await cluster.add("d")
            target.when(AddRequest, "hold", entry_id=11)
            await lose(cluster, "b")
            repairing = asyncio.ensure_future(repair(client, ledger_id, "b"))
            await eventually(lambda: bool(target.held))
            repairing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await repairing
            assert await cluster.metadata.ledgers.get(ledger_id) == before
            assert await cluster.metadata.under_replication.worker_of(ledger_id) is None
            target.rules.clear()
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED

    run(main())


def test_a_mark_that_was_renewed_meanwhile_stays() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 10)
            await cluster.settled(ledger_id, 9)
            target = await cluster.add("d")
            target.when(AddRequest, "hold", entry_id=3)
            await lose(cluster, "b")
            repairing = asyncio.ensure_future(repair(client, ledger_id, "b"))
            await eventually(lambda: bool(target.held))
            await cluster.metadata.under_replication.mark(ledger_id, ["c"])
            target.obey()
            assert (await repairing).outcome is RepairOutcome.MARKED_AGAIN
            assert await is_marked(cluster, ledger_id)

    run(main())


# Open ledgers.


async def repeat_until_decided(client: Client, ledger_id: int, missing: str) -> RepairOutcome:
    await client.metadata.under_replication.mark(ledger_id, [missing])
    async with worker_of(client) as worker:
        assert (await worker.repair(ledger_id)).outcome is RepairOutcome.GRACE_PERIOD
        await asyncio.sleep(PROMPT.open_ledger_grace_s + 0.02)
        return (await worker.repair(ledger_id)).outcome


def test_an_abandoned_ledger_is_fenced_after_the_grace_period_and_repaired() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 25, close=False)
            await cluster.settled(ledger_id, 24)
            await cluster.add("d")
            await lose(cluster, "b")
            assert await repeat_until_decided(client, ledger_id, "b") is RepairOutcome.REPAIRED
            metadata = await cluster.metadata_of(ledger_id)
            assert (metadata.state, metadata.last_entry_id) == (LedgerState.CLOSED, 24)
            await check_repaired(cluster, ledger_id, "b")

    run(main())


def test_a_bookie_that_is_leaving_shows_that_a_writer_is_gone() -> None:
    """It was not asked: beside a lost bookie too few others knew of entries, and the abandoned ledger waited for its writer for ever."""

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 9, close=False, sizes=(3, 2, 2))
            await cluster.settled(ledger_id, 8, copies=2)
            await cluster.add("d")
            await cluster.add("e")
            await lose(cluster, "b")
            await cluster.metadata.bookies.set_readonly("c", bookie_service("127.0.0.1", cluster.ports["c"]), True)
            await client.metadata.under_replication.mark(ledger_id, ["b", "c"])
            async with client.bookie_copies() as copies:
                worker = ReplicationWorker(client, copies, PROMPT, name="worker", leaving=frozenset("c"))
                assert (await worker.repair(ledger_id)).outcome is RepairOutcome.GRACE_PERIOD
                await asyncio.sleep(PROMPT.open_ledger_grace_s + 0.02)
                assert (await worker.repair(ledger_id)).outcome is RepairOutcome.REPAIRED
            metadata = await cluster.metadata_of(ledger_id)
            assert (metadata.state, metadata.last_entry_id) == (LedgerState.CLOSED, 8)
            await check_repaired(cluster, ledger_id, "b")

    run(main())


def test_copies_that_a_recovery_left_out_are_made() -> None:
    """The recovery ends when an ack quorum has the last entries; the third bookie got none."""

    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 8, close=False, sizes=(4, 4, 2))
            await cluster.settled(ledger_id, 7, copies=4)
            del cluster["c"].ledgers[ledger_id].entries[7]
            cluster["c"].when(AddRequest, "drop")
            await cluster.add("e")
            await lose(cluster, "b")
            await client.metadata.under_replication.mark(ledger_id, ["b"])
            async with worker_of(client, replace(PROMPT, open_ledger_grace_s=0.0)) as worker:
                repairing = asyncio.ensure_future(worker.repair(ledger_id))
                async with asyncio.timeout(5):
                    while not (await cluster.metadata_of(ledger_id)).is_closed:
                        await asyncio.sleep(0.002)
                cluster["c"].obey()
                assert (await repairing).outcome is RepairOutcome.REPAIRED
            await check_repaired(cluster, ledger_id, "b")

    run(main())


def test_a_writer_that_appends_is_not_fenced() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create(password=b"secret")
            await writer.append(b"before")
            await lose(cluster, "b")
            await client.metadata.under_replication.mark(writer.ledger_id, ["b"])
            async with worker_of(client) as worker:
                assert (await worker.repair(writer.ledger_id)).outcome is RepairOutcome.GRACE_PERIOD
                await writer.append(b"meanwhile")
                await asyncio.sleep(PROMPT.open_ledger_grace_s + 0.02)
                assert (await worker.repair(writer.ledger_id)).outcome is RepairOutcome.HAS_WRITER
            assert cluster.fenced(writer.ledger_id) == []
            assert (await cluster.metadata_of(writer.ledger_id)).state is LedgerState.OPEN
            await writer.append(b"after")
            assert await is_marked(cluster, writer.ledger_id)
            writer.abandon()

    run(main())


def test_a_writer_whose_entries_no_bookie_shows_is_not_fenced() -> None:
    """Bookies that answer no read of the last entry looked like bookies without further entries, and the writer was fenced."""

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create(password=b"secret")
            await lose(cluster, "b")
            await client.metadata.under_replication.mark(writer.ledger_id, ["b"])
            async with worker_of(client) as worker:
                assert (await worker.repair(writer.ledger_id)).outcome is RepairOutcome.GRACE_PERIOD
                await writer.append(b"meanwhile")
                await asyncio.sleep(PROMPT.open_ledger_grace_s + 0.02)
                for name in "ac":
                    cluster[name].when(ReadRequest, Status.IO_ERROR, fence=False)
                assert (await worker.repair(writer.ledger_id)).outcome is RepairOutcome.GRACE_PERIOD
                assert cluster.fenced(writer.ledger_id) == []
                cluster["a"].obey()
                assert (await worker.repair(writer.ledger_id)).outcome is RepairOutcome.HAS_WRITER
            writer.abandon()

    run(main())


def test_closed_segments_of_an_open_ledger_are_repaired_at_once_and_its_writer_continues() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create(password=b"secret")
            for number in range(10):
                await writer.append(b"%d" % number)
            await cluster.add("d")
            await cluster["b"].stop()
            await cluster.metadata.bookies.unregister("b")
            await writer.append(b"10")
            await eventually(lambda: 10 in cluster["d"].ledgers.get(writer.ledger_id, cluster["a"].ledgers[writer.ledger_id]).entries)
            async with asyncio.timeout(5):
                while len((await cluster.metadata_of(writer.ledger_id)).segments) < 2:
                    await asyncio.sleep(0.01)
            assert (await repair(client, writer.ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            assert cluster.fenced(writer.ledger_id) == []
            await writer.append(b"11")
            await writer.close()
            await eventually(lambda: 11 in cluster["d"].ledgers[writer.ledger_id].entries)
            await check_repaired(cluster, writer.ledger_id, "b")

    run(main())


def test_a_ledger_that_waits_for_its_writer_is_not_fenced() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            created = await client.create(password=b"secret", custom={"writer": b"awaited"})
            created.abandon()
            lost = (await cluster.metadata_of(created.ledger_id)).last_segment.ensemble[0]
            await lose(cluster, lost)
            assert (await repair(client, created.ledger_id, lost)).outcome is RepairOutcome.REPAIRED
            metadata = await cluster.metadata_of(created.ledger_id)
            assert metadata.state is LedgerState.OPEN
            assert lost not in metadata.last_segment.ensemble
            writer = await client.take_up(created.ledger_id, password=b"secret")
            assert await writer.append(b"first") == 0
            await writer.close()

    run(main())


def test_the_password_of_old_metadata_is_unknown_and_said_so() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 3, sizes=(3, 3, 3))
            found = await cluster.metadata.ledgers.get(ledger_id)
            old = replace(
                found.value, format_version=1, credentials_stored=False, password=b"", custom={}, ctime_ms=None, creator_token=None
            )
            await cluster.metadata.ledgers.update(ledger_id, old, found.version)
            lost = old.last_segment.ensemble[0]
            await lose(cluster, lost)
            repaired = await repair(client, ledger_id, lost)
            assert repaired.outcome is RepairOutcome.FAILED
            assert "without password and digest type" in repaired.reason

    run(main())


def test_few_entries_are_in_flight() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await ledger_that_lacks_b(cluster, client, 60)
            for name in "ac":
                cluster[name].when(ReadRequest, "hold")
                cluster[name].when(BatchReadRequest, "hold")
            settings = replace(PROMPT, window_entries=4)
            repairing = asyncio.ensure_future(repair(client, ledger_id, "b", settings))

            def requested() -> int:
                held = [request for name in "ac" for _, request, _ in cluster[name].held]
                return sum(request.max_count if isinstance(request, BatchReadRequest) else 1 for request in held)

            await eventually(lambda: requested() == 4)
            await asyncio.sleep(0.05)
            assert requested() == 4
            for name in "ac":
                cluster[name].obey()
            assert (await repairing).outcome is RepairOutcome.REPAIRED

    run(main())


def test_a_bookie_that_is_leaving_serves_its_own_copies() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 10, sizes=(3, 1, 1))
            await cluster.add("d")
            service = bookie_service("127.0.0.1", cluster.ports["b"])
            await cluster.metadata.bookies.set_readonly("b", service, True)
            await client.metadata.under_replication.mark(ledger_id, ["b"])
            async with client.bookie_copies() as copies:
                worker = ReplicationWorker(client, copies, PROMPT, name="worker", leaving=frozenset("b"))
                assert (await worker.repair(ledger_id)).outcome is RepairOutcome.REPAIRED
            await check_repaired(cluster, ledger_id, "b")

    run(main())


def test_copies_are_placed_by_the_rules_of_placement() -> None:
    """An empty ledger, since nothing listens at the addresses of other machines."""

    async def main() -> None:
        host = real_host("client", seed=1)
        settings = replace(QUICK, placement_policy="rack-aware", placement_enforced=True)
        async with await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True) as metadata:
            for number, name in enumerate("abcdefgh"):
                location = "/far" if name in "be" else "/near"
                service = bookie_service(f"10.0.0.{number}", 3181, network_location=location)
                await metadata.bookies.register(name, service)
            async with Client(host, metadata, settings) as client:
                for _ in range(5):
                    ledger_id = await write_ledger(client, 0)
                    await metadata.bookies.unregister("b")
                    await metadata.bookies.unregister("e")
                    await metadata.bookies.register("i", bookie_service("10.0.0.9", 3181, network_location="/far"))
                    repaired = await repair(client, ledger_id, "b e")
                    assert repaired.outcome is RepairOutcome.REPAIRED, repaired.reason
                    assert "i" in (await metadata.ledgers.get(ledger_id)).value.last_segment.ensemble
                    await metadata.bookies.unregister("i")
                    for number, name in enumerate("be"):
                        service = bookie_service(f"10.0.1.{number}", 3181, network_location="/far")
                        await metadata.bookies.register(name, service)

    run(main())
