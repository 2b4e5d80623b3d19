"""Repairs of open ledgers whose bookies come back, or lack entries although they are there."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.unit.autorecovery.recovery_rig import PROMPT, worker_of
from tests.unit.client.cluster import fake_cluster, run
from triplicate.autorecovery import RepairOutcome
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
