"""Decommissions of bookies that ledgers in the trash name."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.unit.autorecovery.decommission_rig import obedient_cluster
from tests.unit.autorecovery.recovery_rig import PROMPT, absent_copies, lose, write_ledger
from tests.unit.client.cluster import FakeCluster, run
from triplicate.autorecovery import DecommissionReport, decommission, decommission_bookie
from triplicate.client import Client


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decommission, "POLL_S", 0.02)


async def take_out(cluster: FakeCluster, client: Client, names: Sequence[str]) -> DecommissionReport:
    """Decommission bookies together, and wipe their disks if they may be."""
    report = await decommission_bookie(client, names, settings=PROMPT, stall_s=0.2)
    for name in names if report.is_removed else ():
        await lose(cluster, name)
    return report


def test_a_ledger_can_be_read_after_its_undelete() -> None:
    """Nothing moved its copies, the undelete succeeded, and every read failed."""

    async def main() -> None:
        async with obedient_cluster("abcdef") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 5)
            await cluster.settled(ledger_id, 4)
            names = (await cluster.metadata_of(ledger_id)).segments[0].ensemble
            await client.delete(ledger_id)
            for name in names:
                report = await take_out(cluster, client, [name])
                assert report.is_removed
                assert (report.ledgers, report.entries) == (1, 5)
            await client.metadata.trash.undelete(ledger_id)
            metadata = await cluster.metadata_of(ledger_id)
            assert not set(names) & set(metadata.segments[0].ensemble)
            assert absent_copies(cluster, ledger_id, metadata) == []
            async with await client.open(ledger_id, password=b"secret") as reader:
                assert len(await reader.read(0, 4)) == 5

    run(main())


def test_a_ledger_that_was_open_keeps_a_copy_of_each_entry() -> None:
    async def main() -> None:
        async with obedient_cluster("abcdef") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 5, close=False)
            await cluster.settled(ledger_id, 4)
            first, second, _ = (await cluster.metadata_of(ledger_id)).segments[0].ensemble
            await client.delete(ledger_id)
            assert (await take_out(cluster, client, [first])).is_removed
            report = await take_out(cluster, client, [second])
            assert not report.is_removed
            assert [(one.ledger_id, one.may_pass) for one in report.obstacles] == [(ledger_id, True)]
            assert "was open when it was deleted" in report.obstacles[0].reason
            await client.metadata.trash.undelete(ledger_id)
            reader = await client.recover(ledger_id, password=b"secret")
            assert reader.last_add_confirmed == 4

    run(main())


def test_ledgers_that_cannot_be_undeleted_any_more_are_left() -> None:
    async def main() -> None:
        async with obedient_cluster("abcd") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 5)
            await client.metadata.trash.delete(ledger_id, 0.001)
            assert await client.metadata.trash.get(ledger_id) is not None
            await asyncio.sleep(0.02)  # Its period is over then.
            report = await take_out(cluster, client, ["a"])
            assert report.is_removed
            assert report.needs == ()

    run(main())


def test_too_few_bookies_for_the_trash_refuse_the_decommission() -> None:
    async def main() -> None:
        async with obedient_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 5)
            await client.delete(ledger_id)
            report = await take_out(cluster, client, ["a"])
            assert [one.ledger_id for one in report.refused] == [ledger_id]
            assert await client.metadata.read_only_requests.bookie_ids() == []

    run(main())
