"""Repairs of open ledgers whose bookies come back, or lack entries although they are there."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.unit.autorecovery.recovery_rig import PROMPT, garble, is_marked, worker_of
from tests.unit.client.cluster import fake_cluster, run
from triplicate.autorecovery import LedgerChecker, RepairOutcome, mark_copies
from triplicate.metadata import bookie_service


def test_a_second_loss_has_a_grace_period_of_its_own() -> None:
    """The worker compared with its view of the first loss, and fenced a living writer at its first look."""

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create(password=b"secret")
            await writer.append(b"x")
            await cluster.settled(writer.ledger_id, 0)
            marks, bookies = client.metadata.under_replication, cluster.metadata.bookies
            settings = replace(PROMPT, open_ledger_grace_s=0.05)
            async with worker_of(client, settings) as one, worker_of(client, settings) as two:
                await bookies.unregister("b")
                await marks.mark(writer.ledger_id, ["b"])
                assert (await one.repair(writer.ledger_id)).outcome is RepairOutcome.GRACE_PERIOD
                await bookies.register("b", bookie_service("127.0.0.1", cluster.ports["b"]))
                assert (await two.repair(writer.ledger_id)).outcome is RepairOutcome.REPAIRED
                await asyncio.sleep(settings.open_ledger_grace_s + 0.02)
                await bookies.unregister("b")
                await marks.mark(writer.ledger_id, ["b"])
                assert (await one.repair(writer.ledger_id)).outcome is RepairOutcome.GRACE_PERIOD
            writer.abandon()

    run(main())


def test_a_confirmed_entry_that_a_present_bookie_lacks_is_copied_while_the_ledger_is_open() -> None:
    """The mark was deleted as of a repaired ledger, and nothing was copied."""

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create(password=b"secret")
            for _ in range(6):
                await writer.append(b"x")
            ledger_id = writer.ledger_id
            await cluster.settled(ledger_id, 5)
            del cluster["b"].ledgers[ledger_id].entries[2]
            assert await mark_copies(client, await LedgerChecker(client, ledger_id, 1.0).check()) == ("b",)
            async with worker_of(client) as worker:
                repair = await worker.repair(ledger_id)
            assert (repair.outcome, repair.entries, repair.fragments) == (RepairOutcome.REPAIRED, 1, 1)
            assert cluster["b"].ledgers[ledger_id].entries[2] == cluster["a"].ledgers[ledger_id].entries[2]
            await writer.append(b"the writer was not fenced")
            writer.abandon()

    run(main())


def test_a_read_only_bookie_that_lacks_an_entry_of_an_open_ledger_is_replaced_by_a_recovery() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create(password=b"secret")
            for _ in range(3):
                await writer.append(b"x")
            ledger_id = writer.ledger_id
            await cluster.settled(ledger_id, 2)
            writer.abandon()
            del cluster["b"].ledgers[ledger_id].entries[0]
            await cluster.add("d")
            await cluster.set_readonly("b", True)
            await client.metadata.under_replication.mark(ledger_id, ["b"])
            settings = replace(PROMPT, open_ledger_grace_s=0.05)
            async with worker_of(client, settings) as worker:
                repair = await worker.repair(ledger_id)
                assert repair.outcome is RepairOutcome.GRACE_PERIOD
                assert "b in the last segment" in repair.reason
                await asyncio.sleep(settings.open_ledger_grace_s + 0.02)
                assert (await worker.repair(ledger_id)).outcome is RepairOutcome.REPAIRED
            metadata = await cluster.metadata_of(ledger_id)
            assert metadata.is_closed
            assert all("b" not in segment.ensemble for segment in metadata.segments)
            assert set(cluster["d"].ledgers[ledger_id].entries) == {0, 1, 2}

    run(main())


def test_an_open_ledger_on_a_bookie_of_unknown_address_stays_marked() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create(password=b"secret")
            for _ in range(3):
                await writer.append(b"x")
            await cluster.settled(writer.ledger_id, 2)
            await garble(cluster, "b")
            await client.metadata.under_replication.mark(writer.ledger_id, ["b"])
            async with worker_of(client) as worker:
                repair = await worker.repair(writer.ledger_id)
            assert repair.outcome is RepairOutcome.FAILED
            assert "cannot be decoded" in repair.reason
            assert await is_marked(cluster, writer.ledger_id)
            writer.abandon()

    run(main())
