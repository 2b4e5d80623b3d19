"""The rate and the window of a replication worker."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.autorecovery.recovery_rig import PROMPT, lose, repair, write_ledger
from tests.unit.client.cluster import fake_cluster, run
from triplicate.autorecovery import RepairOutcome


def test_the_rate_is_kept() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 100)
            await cluster.settled(ledger_id, 99)
            size_bytes = sum(map(len, cluster["a"].ledgers[ledger_id].entries.values()))
            await cluster.add("d")
            await lose(cluster, "b")
            started = cluster.host.clock.monotonic()
            repaired = await repair(client, ledger_id, "b", replace(PROMPT, bytes_per_s=size_bytes * 4))
            assert repaired.outcome is RepairOutcome.REPAIRED
            assert repaired.size_bytes == size_bytes
            assert cluster.host.clock.monotonic() - started > 0.22

    run(main())


def test_an_entry_larger_than_the_window_is_copied_alone() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            writer = await client.create(password=b"secret")
            for number in range(6):
                await writer.append(bytes([number]) * 20_000)
            await writer.close()
            await cluster.settled(writer.ledger_id, 5)
            await cluster.add("d")
            await lose(cluster, "b")
            repaired = await repair(client, writer.ledger_id, "b", replace(PROMPT, window_bytes=1024))
            assert (repaired.outcome, repaired.entries) == (RepairOutcome.REPAIRED, 6)

    run(main())
