"""Decommissions beside workers that chose the bookie before, and beside a second operator who keeps it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.autorecovery.decommission_rig import add_cookie, naming, obedient_cluster
from tests.unit.autorecovery.recovery_rig import PROMPT, absent_copies, worker_of, write_ledger
from tests.unit.client.cluster import run
from tests.waiting import eventually
from triplicate.autorecovery import (
    DecommissionProgress,
    Obstacle,
    RepairOutcome,
    ReplicationWorker,
    decommission,
    decommission_bookie,
    ledger_repair,
)
from triplicate.client import BookieCopies
from triplicate.errors import ArgumentError

PATIENT = replace(PROMPT, open_ledger_grace_s=3600)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decommission, "POLL_S", 0.02)


def test_a_worker_that_chose_the_bookie_before_holds_up_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker had copied a ledger to it, and named it after its cookie was removed: the copy was lost with its disks."""
    copied, may_name = asyncio.Event(), asyncio.Event()
    name_targets = ledger_repair.RepairRun._name_targets

    async def held(run: ledger_repair.RepairRun, *arguments: object, **named: object) -> None:
        copied.set()
        await may_name.wait()
        await name_targets(run, *arguments, **named)  # type: ignore[arg-type]

    async def main() -> None:
        async with obedient_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 10)
            await cluster.settled(ledger_id, 9)
            await cluster.add("d")
            await add_cookie(cluster, "d")
            cluster["d"].total_bytes = cluster["d"].free_bytes = 1 << 40
            await cluster.metadata.read_only_requests.request("b", leaving=True)
            async with asyncio.timeout(5):
                while "b" in await cluster.metadata.bookies.writable():
                    await asyncio.sleep(0.002)
            await client.metadata.under_replication.mark(ledger_id, ["b"])
            monkeypatch.setattr(ledger_repair.RepairRun, "_name_targets", held)
            async with worker_of(client) as worker:
                repairing = asyncio.create_task(worker.repair(ledger_id))
                await copied.wait()
                await cluster.add("e")
                await add_cookie(cluster, "e")
                progress = DecommissionProgress()
                leaving = asyncio.create_task(decommission_bookie(client, ["d"], settings=PROMPT, progress=progress))
                await eventually(lambda: leaving.done() or bool(progress.obstacles))
                assert not leaving.done()
                (obstacle,) = progress.obstacles
                assert (obstacle.ledger_id, obstacle.may_pass) == (ledger_id, True)
                assert "worker" in obstacle.reason
                assert await cluster.metadata.cookies.get("d") is not None
                may_name.set()
                repaired = await repairing
                # The decommission may have marked the ledger again meanwhile, for its own bookie.
                assert repaired.outcome in (RepairOutcome.REPAIRED, RepairOutcome.MARKED_AGAIN)
                assert [(made.target, made.replaced) for made in repaired.made] == [("d", "b")]
            report = await leaving
            assert report.is_removed
            assert await naming(cluster, [ledger_id], "d") == []
            assert absent_copies(cluster, ledger_id, await cluster.metadata_of(ledger_id)) == []

    run(main())


def test_a_bookie_that_is_kept_during_the_verdict_keeps_its_cookie(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was writable again and without a cookie, so that it could not be started any more."""
    judge = decommission._Decommission._judge

    async def main() -> None:
        async def kept(run: decommission._Decommission, worker: ReplicationWorker, copies: BookieCopies) -> tuple[Obstacle, ...]:
            obstacles = await judge(run, worker, copies)
            await cluster.metadata.read_only_requests.withdraw("b")
            await cluster.set_readonly("b", False)
            return obstacles

        monkeypatch.setattr(decommission._Decommission, "_judge", kept)
        async with obedient_cluster("abcd") as cluster, cluster.client() as client:
            await write_ledger(client, 5)
            with pytest.raises(ArgumentError, match="the request that it be read-only was withdrawn"):
                await decommission_bookie(client, ["b"], settings=PATIENT)
            assert await cluster.metadata.cookies.get("b") is not None
            assert await cluster.metadata.bookies.writable()

    run(main())
