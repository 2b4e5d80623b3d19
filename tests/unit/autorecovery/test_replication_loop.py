"""The loop that repairs marked ledgers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.unit.autorecovery.recovery_rig import PROMPT, absent_copies, is_marked, lose, write_ledger
from tests.unit.client.cluster import FakeCluster, fake_cluster, run
from tests.waiting import LIMIT_S
from triplicate.autorecovery import AuditorMetrics, LedgerRepair, ReplicationLoop, ReplicationWorker
from triplicate.client import Client
from triplicate.ledger import LedgerMetadata
from triplicate.metadata import ReplicationLock, UnderreplicationManager


async def no_writer(metadata: LedgerMetadata) -> bool:
    return False


async def living_writer(metadata: LedgerMetadata) -> bool:
    return True


@asynccontextmanager
async def loop_of(client: Client, *, lives: bool = False) -> AsyncIterator[None]:
    async with client.bookie_copies() as copies:
        worker = ReplicationWorker(client, copies, PROMPT, name="w", has_living_writer=living_writer if lives else no_writer)
        task = asyncio.create_task(ReplicationLoop(client, worker, PROMPT, AuditorMetrics(None), "w").run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def until_unmarked(cluster: FakeCluster, *ledger_ids: int) -> None:
    async with asyncio.timeout(LIMIT_S):
        for ledger_id in ledger_ids:
            while await is_marked(cluster, ledger_id):
                await asyncio.sleep(0.005)


def test_marked_ledgers_are_repaired_also_those_marked_later() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_ids = [await write_ledger(client, 10) for _ in range(12)]
            for ledger_id in ledger_ids:
                await cluster.settled(ledger_id, 9)
            await cluster.add("d")
            await lose(cluster, "b")
            marks = cluster.metadata.under_replication
            for ledger_id in ledger_ids[:6]:
                await marks.mark(ledger_id, ["b"])
            async with loop_of(client), loop_of(client):
                await until_unmarked(cluster, *ledger_ids[:6])
                for ledger_id in ledger_ids[6:]:
                    await marks.mark(ledger_id, ["b"])
                await until_unmarked(cluster, *ledger_ids)
            for ledger_id in ledger_ids:
                assert absent_copies(cluster, ledger_id, await cluster.metadata_of(ledger_id)) == []
                assert await marks.worker_of(ledger_id) is None

    run(main())


def test_nothing_is_repaired_while_auto_recovery_is_disabled() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 10)
            await cluster.settled(ledger_id, 9)
            await cluster.add("d")
            await lose(cluster, "b")
            marks = cluster.metadata.under_replication
            await marks.disable()
            await marks.mark(ledger_id, ["b"])
            async with loop_of(client):
                await asyncio.sleep(1.0)
                assert await is_marked(cluster, ledger_id)
                assert ledger_id not in cluster["d"].ledgers
                await marks.enable()
                await until_unmarked(cluster, ledger_id)

    run(main())


def test_an_entry_without_a_good_copy_stays_listed_with_the_reason_until_it_is_there() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            bad, good = await write_ledger(client, 10), await write_ledger(client, 10)
            for ledger_id in (bad, good):
                await cluster.settled(ledger_id, 9)
            await cluster.add("d")
            await lose(cluster, "b")
            kept = {name: cluster[name].ledgers[bad].entries.pop(4) for name in "ac"}
            marks, notes = cluster.metadata.under_replication, cluster.metadata.repair_notes
            await marks.mark(bad, ["b"])
            async with loop_of(client):
                async with asyncio.timeout(LIMIT_S):
                    while await notes.get(bad) is None:
                        await asyncio.sleep(0.005)
                await marks.mark(good, ["b"])
                await until_unmarked(cluster, good)
            note = await notes.get(bad)
            assert note is not None
            assert note.worker == "w"
            assert f"failed: entry 4 of ledger {bad} has no intact copy" in note.reason
            assert await is_marked(cluster, bad)
            assert await marks.worker_of(bad) is None
            for name, body in kept.items():
                cluster[name].ledgers[bad].entries[4] = body
            async with loop_of(client):
                await until_unmarked(cluster, bad)
                async with asyncio.timeout(LIMIT_S):
                    while await notes.get(bad) is not None:
                        await asyncio.sleep(0.005)

    run(main())


def test_an_open_ledger_is_repaired_after_its_grace_period() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 5, close=False)
            lost = (await cluster.metadata_of(ledger_id)).last_segment.ensemble[1]
            await lose(cluster, lost)
            await cluster.metadata.under_replication.mark(ledger_id, [lost])
            async with loop_of(client):
                await until_unmarked(cluster, ledger_id)
            metadata = await cluster.metadata_of(ledger_id)
            assert metadata.is_closed
            assert absent_copies(cluster, ledger_id, metadata) == []

    run(main())


def test_a_ledger_with_a_living_writer_is_left_to_it_with_a_note() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 5, close=False)
            lost = (await cluster.metadata_of(ledger_id)).last_segment.ensemble[1]
            await lose(cluster, lost)
            await cluster.metadata.under_replication.mark(ledger_id, [lost])
            async with loop_of(client, lives=True), asyncio.timeout(LIMIT_S):
                while await cluster.metadata.repair_notes.get(ledger_id) is None:
                    await asyncio.sleep(0.005)
            assert await is_marked(cluster, ledger_id)
            assert cluster.fenced(ledger_id) == []

    run(main())


def test_a_lock_whose_repair_never_begins_is_released() -> None:
    """Another repair fails between the lock and the first step of its repair, and ends the loop."""

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client, client.bookie_copies() as copies:
            ledger_ids = [await write_ledger(client, 3) for _ in range(2)]
            for ledger_id in ledger_ids:
                await client.metadata.under_replication.mark(ledger_id, ["b"])
            worker = ReplicationWorker(client, copies, PROMPT, name="w", has_living_writer=no_writer)
            second = asyncio.Event()
            repairs: list[int] = []

            async def repair_locked(lock: ReplicationLock) -> LedgerRepair:
                repairs.append(lock.mark.ledger_id)
                await second.wait()
                raise RuntimeError("a bug")

            lock_next = UnderreplicationManager.lock_next

            async def lock_then_fail(self: UnderreplicationManager, *args: Any) -> ReplicationLock:
                lock = await lock_next(self, *args)
                if repairs:
                    second.set()
                    await asyncio.sleep(0)
                return lock

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(worker, "repair_locked", repair_locked)
                patch.setattr(UnderreplicationManager, "lock_next", lock_then_fail)
                with pytest.raises(RuntimeError, match="a bug"):
                    await ReplicationLoop(client, worker, PROMPT, AuditorMetrics(None), "w").run()
            for ledger_id in set(ledger_ids).difference(repairs):
                assert await client.metadata.under_replication.worker_of(ledger_id) is None

    run(main())
