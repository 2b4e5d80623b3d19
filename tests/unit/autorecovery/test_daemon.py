"""The daemon: election, auditor and worker in one process."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.autorecovery.auditor_rig import AUDITED
from tests.unit.autorecovery.recovery_rig import absent_copies, lose, replace_disks, write_ledger
from tests.unit.client.cluster import fake_cluster, run
from tests.waiting import LIMIT_S, eventually
from triplicate.autorecovery import AutorecoveryDaemon, auditor
from triplicate.errors import ConnectionLost
from triplicate.metadata import UnderreplicationManager

PROMPTLY = replace(AUDITED, lost_bookie_delay_s=0)


def test_copies_of_a_lost_bookie_are_made_again_by_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditor, "SETTLE_S", 0.01)

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_ids = [await write_ledger(client, 8) for _ in range(5)]
            for ledger_id in ledger_ids:
                await cluster.settled(ledger_id, 7)
            await cluster.add("d")
            daemon = AutorecoveryDaemon(client, PROMPTLY, name="a")
            await eventually(lambda: bool(cluster.told("autorecovery.audit")))
            assert await cluster.metadata.auditor.current() == "a"
            await lose(cluster, "b")
            async with asyncio.timeout(LIMIT_S):
                for ledger_id in ledger_ids:
                    while "b" in (await cluster.metadata_of(ledger_id)).last_segment.ensemble:
                        await asyncio.sleep(0.01)
            await daemon.stop()
            await daemon.stop()
            for ledger_id in ledger_ids:
                assert absent_copies(cluster, ledger_id, await cluster.metadata_of(ledger_id)) == []
            assert daemon.failure is None

    run(main())


def test_a_bookie_with_replaced_disks_is_refilled_by_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplicate.autorecovery.daemon.REFILL_FIRST_S", 0.05)
    monkeypatch.setattr("triplicate.autorecovery.daemon.REFILL_AGAIN_S", 0.05)

    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_ids = [await write_ledger(client, 8) for _ in range(5)]
            for ledger_id in ledger_ids:
                await cluster.settled(ledger_id, 7)
            incarnations = cluster.metadata.incarnations
            await replace_disks(cluster, "b")
            daemon = AutorecoveryDaemon(client, AUDITED, name="a")
            async with asyncio.timeout(LIMIT_S):
                while not (await incarnations.get("b")).visited:
                    await asyncio.sleep(0.01)
            await daemon.stop()
            for ledger_id in ledger_ids:
                assert absent_copies(cluster, ledger_id, await cluster.metadata_of(ledger_id)) == []
                assert "b" in cluster.fenced(ledger_id)

    run(main())


def test_a_failing_metadata_store_does_not_end_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplicate.autorecovery.daemon.RETRY_FIRST_S", 0.01)
    fails = True
    is_enabled = UnderreplicationManager.is_enabled

    async def failing(self: UnderreplicationManager) -> bool:
        if fails:
            raise ConnectionLost("the store does not answer")
        return await is_enabled(self)

    monkeypatch.setattr(UnderreplicationManager, "is_enabled", failing)

    async def main() -> None:
        nonlocal fails
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            daemon = AutorecoveryDaemon(client, PROMPTLY, name="a")
            await eventually(lambda: {facts["task"] for facts in cluster.told("autorecovery.task_failed")} == {"auditor", "worker"})
            fails = False
            await eventually(lambda: bool(cluster.told("autorecovery.audit")))
            await daemon.stop()
            assert daemon.failure is None

    run(main())


def test_the_auditor_does_its_periodic_work_while_auto_recovery_is_enabled() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            done = 0

            async def work() -> None:
                nonlocal done
                done += 1

            hurried = replace(PROMPTLY, log_copies_interval_s=0.02)  # type: ignore[arg-type]
            daemon = AutorecoveryDaemon(client, hurried, name="a", chore=work)
            await eventually(lambda: done > 2)
            await cluster.metadata.under_replication.disable()
            await asyncio.sleep(0.1)
            before = done
            await asyncio.sleep(0.1)
            assert done == before
            await daemon.stop()

    run(main())
