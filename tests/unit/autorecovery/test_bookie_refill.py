"""A bookie whose disks were replaced gets its entries and fences back, and then its limbo ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.autorecovery.recovery_rig import PROMPT, absent_copies, is_marked, replace_disks, write_ledger
from tests.unit.client.cluster import FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.autorecovery import LedgerRepair, PassProgress, RepairOutcome, ReplicationWorker, refill_bookie, refill_bookies_in_limbo
from triplicate.autorecovery.bookie_refill import OpenRefillsKept, not_repaired
from triplicate.autorecovery.core.open_refill import OpenRefills
from triplicate.errors import ArgumentError
from triplicate.ledger import LedgerMetadata
from triplicate.metadata.incarnations import Incarnations
from triplicate.runtime import TaskScope


async def is_visited(cluster: FakeCluster, bookie_id: str) -> bool:
    return (await cluster.metadata.incarnations.get(bookie_id)).visited


def test_all_entries_and_fences_come_back_and_the_limbo_ends() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_ids = [await write_ledger(client, 30) for _ in range(3)]
            ledger_ids.append(await write_ledger(client, 30, close=False))
            for ledger_id in ledger_ids:
                await cluster.settled(ledger_id, 29)
            await replace_disks(cluster, "b")
            report = await refill_bookie(client, "b", settings=PROMPT)
            assert (report.was_in_limbo, report.complete, report.blocked) == (True, True, ())
            assert [repaired.ledger_id for repaired in report.repairs] == ledger_ids
            for ledger_id in ledger_ids:
                metadata = await cluster.metadata_of(ledger_id)
                assert metadata.is_closed
                assert "b" in metadata.last_segment.ensemble, "the copies come back to their place"
                assert absent_copies(cluster, ledger_id, metadata) == []
                assert "b" in cluster.fenced(ledger_id), "an old writer must not pass"
                assert not await is_marked(cluster, ledger_id)
            assert await is_visited(cluster, "b")
            again = await refill_bookie(client, "b", settings=PROMPT)
            assert (again.was_in_limbo, again.complete, again.repairs) == (False, True, ())

    run(main())


def test_a_limbo_that_another_refill_has_ended_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    mark_visited = Incarnations.mark_visited

    async def after_another(incarnations: Incarnations, bookie_id: str, *, number: int | None = None) -> bool:
        assert await mark_visited(incarnations, bookie_id, number=number)
        return await mark_visited(incarnations, bookie_id, number=number)

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 30)
            await cluster.settled(ledger_id, 29)
            await replace_disks(cluster, "b")
            monkeypatch.setattr(Incarnations, "mark_visited", after_another)
            report = await refill_bookie(client, "b", settings=PROMPT)
            assert (report.was_in_limbo, report.complete) == (True, True)

    run(main())


def test_a_bookie_stays_in_limbo_while_a_writer_lives() -> None:
    async def lives(metadata: LedgerMetadata) -> bool:
        return True

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 30, close=False)
            await cluster.settled(ledger_id, 29)
            await replace_disks(cluster, "b")
            report = await refill_bookie(client, "b", settings=PROMPT, has_living_writer=lives)
            assert not report.complete
            assert [repaired.outcome for repaired in report.repairs] == [RepairOutcome.HAS_WRITER]
            assert not await is_visited(cluster, "b")
            assert cluster.fenced(ledger_id) == []
            assert await is_marked(cluster, ledger_id)

    run(main())


def test_a_writer_that_may_choose_its_entry_ids_gives_no_bound() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client, client.bookie_copies() as copies:
            writer = await client.create(password=b"secret")
            await writer.append(b"before")
            await replace_disks(cluster, "b")
            settings = replace(PROMPT, open_ledger_grace_s=3600.0)
            worker = ReplicationWorker(client, copies, settings, name="refill", open_refills=OpenRefills("b", 2))
            await cluster.metadata.under_replication.mark(writer.ledger_id, ["b"])
            outcomes = []
            for _ in range(5):
                outcomes.append((await worker.repair(writer.ledger_id)).outcome)
                for _ in range(4):
                    await writer.append(b"meanwhile")
            assert outcomes == [RepairOutcome.GRACE_PERIOD] + 4 * [RepairOutcome.HAS_WRITER]
            await writer.close()

    run(main())


def test_a_ledger_that_other_workers_keep_is_named_after_the_wait() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            kept, free = [await write_ledger(client, 30) for _ in range(2)]
            await replace_disks(cluster, "b")
            marks = cluster.metadata.under_replication
            await marks.mark(kept, ["b"])
            assert await marks.lock(kept, "another worker") is not None
            report = await refill_bookie(client, "b", settings=PROMPT)
            assert not report.complete
            assert [repaired.ledger_id for repaired in report.unrepaired] == [kept]
            assert "another worker repairs it, for 0.5 s without progress; the next refill goes on" in report.unrepaired[0].reason
            assert not await is_marked(cluster, free)

    run(main())


async def on_a_and_c(cluster: FakeCluster, ledger_id: int, entry_id: int) -> None:
    await eventually(lambda: set(cluster.holders(ledger_id, entry_id)) >= {"a", "c"})


def test_what_one_refill_finds_out_about_a_writer_serves_the_next() -> None:
    async def lives(metadata: LedgerMetadata) -> bool:
        return True

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create(password=b"secret", custom={"log": b"events"})
            for _ in range(10):
                last = await writer.append(b"before")
            await on_a_and_c(cluster, writer.ledger_id, last)
            await replace_disks(cluster, "b")
            known: OpenRefillsKept = {}
            settings = replace(PROMPT, refill_wait_s=0.0)
            for _ in range(2):
                (report,) = await refill_bookies_in_limbo(client, settings=settings, has_living_writer=lives, known=known)
                assert not report.complete
                assert "b in the last segment of an open ledger of log events, whose writer lives" in report.repairs[0].reason
                assert "the refill waited for" in report.repairs[0].reason
                last = await writer.append(b"one entry in a long time")
                last = await writer.append(b"another")
                await on_a_and_c(cluster, writer.ledger_id, last)
            (report,) = await refill_bookies_in_limbo(client, settings=settings, has_living_writer=lives, known=known)
            assert (report.complete, known) == (True, {})
            assert await is_visited(cluster, "b")
            assert cluster.fenced(writer.ledger_id) == []
            await writer.close()

    run(main())


def test_ledgers_made_since_are_left_alone() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            await replace_disks(cluster, "b")
            await asyncio_moment(cluster)
            ledger_id = await write_ledger(client, 30, close=False)
            report = await refill_bookie(client, "b", settings=PROMPT)
            assert (report.complete, report.repairs) == (True, ())
            assert cluster.fenced(ledger_id) == []

    run(main())


async def asyncio_moment(cluster: FakeCluster) -> None:
    """Let the store's clock, which counts milliseconds, pass the time of the replacement."""
    incarnation = await cluster.metadata.incarnations.get("b")
    while cluster.host.clock.wall_us() // 1000 <= incarnation.changed_ms:
        pass


def test_a_ledger_without_an_intact_copy_keeps_the_bookie_in_limbo() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 30)
            await cluster.settled(ledger_id, 29)
            for bookie_id in "ac":
                del cluster[bookie_id].ledgers[ledger_id].entries[9]
            await replace_disks(cluster, "b")
            report = await refill_bookie(client, "b", settings=PROMPT)
            assert not report.complete
            assert "entry 9" in report.repairs[0].reason
            assert not await is_visited(cluster, "b")

    run(main())


def test_a_ledger_in_the_trash_keeps_the_bookie_in_limbo() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 30)
            await cluster.settled(ledger_id, 29)
            await replace_disks(cluster, "b")
            await cluster.metadata.trash.delete(ledger_id, 3600.0)
            report = await refill_bookie(client, "b", settings=PROMPT)
            assert not report.complete
            assert [blocked for blocked, _ in report.blocked] == [ledger_id]
            assert not await is_visited(cluster, "b")

    run(main())


def test_disks_that_are_replaced_again_are_not_counted_as_refilled() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            await replace_disks(cluster, "b")
            first = await cluster.metadata.incarnations.get("b")
            await replace_disks(cluster, "b")
            assert not await cluster.metadata.incarnations.mark_visited("b", number=first.number)
            assert not await is_visited(cluster, "b")
            assert (await refill_bookie(client, "b", settings=PROMPT)).complete

    run(main())


def test_a_bookie_that_is_not_writable_is_refused() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            await replace_disks(cluster, "b")
            await cluster.set_readonly("b", True)
            with pytest.raises(ArgumentError, match="not registered as writable"):
                await refill_bookie(client, "b", settings=PROMPT)

    run(main())


def test_every_writable_bookie_in_limbo_is_refilled() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 30)
            await cluster.settled(ledger_id, 29)
            assert await refill_bookies_in_limbo(client, settings=PROMPT) == ()
            await replace_disks(cluster, "b")
            await replace_disks(cluster, "c")
            await cluster.set_readonly("c", True)
            (report,) = await refill_bookies_in_limbo(client, settings=PROMPT)
            assert (report.bookie_id, report.complete) == ("b", True)
            assert await is_visited(cluster, "b")
            assert not await is_visited(cluster, "c")
            await cluster.set_readonly("c", False)
            (report,) = await refill_bookies_in_limbo(client, settings=PROMPT)
            assert (report.bookie_id, report.complete) == ("c", True)
            assert absent_copies(cluster, ledger_id, await cluster.metadata_of(ledger_id)) == []

    run(main())


def test_another_workers_verdict_does_not_end_the_limbo() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 30)
            await cluster.settled(ledger_id, 29)
            await replace_disks(cluster, "b")
            repairs = (LedgerRepair(ledger_id, RepairOutcome.NOT_MARKED), LedgerRepair(ledger_id + 1, RepairOutcome.REPAIRED))
            assert [repaired.ledger_id for repaired in not_repaired(repairs)] == [ledger_id]
            marks = cluster.metadata.under_replication
            await marks.mark(ledger_id, ["b"])
            lock = await marks.lock(ledger_id, "another worker")
            assert lock is not None
            scope = TaskScope("other")
            waiting = asyncio.Event()
            progress = PassProgress(on_change=lambda: waiting.set() if progress.waits_for else None)
            refill = scope.spawn(refill_bookie(client, "b", settings=replace(PROMPT, refill_wait_s=60.0), progress=progress), name="refill")
            await eventually(lambda: waiting.is_set() or refill.done())
            assert progress.waits_for == f"the other workers of 1 ledgers ({ledger_id})"
            # The other worker, which may know no limbo, deletes the mark.
            assert await marks.complete(lock)
            report = await refill
            assert (report.complete, progress.waits_for) == (True, "")
            assert "b" in cluster.fenced(ledger_id)
            await scope.aclose()

    run(main())
