"""Repairs that move copies of living bookies, because their machines leave none for those of lost ones."""

from __future__ import annotations

from tests.unit.autorecovery.recovery_rig import absent_copies, is_marked, lose, repair, write_ledger
from tests.unit.client.cluster import fake_cluster, run
from triplicate.autorecovery import RepairOutcome
from triplicate.wire import AddRequest, Status


def test_a_striped_ledger_is_rearranged_where_no_single_replacement_keeps_copies_apart() -> None:
    async def main() -> None:
        async with fake_cluster("") as cluster, cluster.client() as client:
            for name, machine in {"a": 2, "b": 3, "c": 4, "d": 3}.items():
                await cluster.add(name, f"127.0.0.{machine}")
            ledger_id = await write_ledger(client, 40, sizes=(4, 2, 2))
            before = await cluster.metadata_of(ledger_id)
            for name, machine in {"x": 2, "y": 4}.items():
                await cluster.add(name, f"127.0.0.{machine}")
            for name in "bd":
                await lose(cluster, name)
            repaired = await repair(client, ledger_id, "b d")
            assert repaired.outcome is RepairOutcome.REPAIRED
            after = await cluster.metadata_of(ledger_id)
            assert set(after.last_segment.ensemble) == set("acxy")
            machines = {"a": 2, "x": 2, "c": 4, "y": 4}
            first, second, third, fourth = (machines[name] for name in after.last_segment.ensemble)
            assert (first, second) == (third, fourth)
            assert first != second
            stayed = [old for old, new in zip(before.last_segment.ensemble, after.last_segment.ensemble, strict=True) if old == new]
            assert len(stayed) == 1, "no more bookies change than must"
            assert absent_copies(cluster, ledger_id, after) == []
            assert not await is_marked(cluster, ledger_id)

    run(main())


def test_a_rearrangement_that_is_interrupted_changes_nothing() -> None:
    async def main() -> None:
        async with fake_cluster("") as cluster, cluster.client() as client:
            for name, machine in {"a": 2, "b": 3, "c": 4, "d": 3}.items():
                await cluster.add(name, f"127.0.0.{machine}")
            ledger_id = await write_ledger(client, 40, sizes=(4, 2, 2))
            before = await cluster.metadata_of(ledger_id)
            for name, machine in {"x": 2, "y": 4}.items():
                await cluster.add(name, f"127.0.0.{machine}")
            for name in "bd":
                await lose(cluster, name)
            # Neither of the new bookies keeps copies.
            for name in "xy":
                cluster[name].when(AddRequest, Status.IO_ERROR)
            repaired = await repair(client, ledger_id, "b d")
            assert repaired.outcome is RepairOutcome.FAILED
            assert await cluster.metadata_of(ledger_id) == before
            for name in "xy":
                cluster[name].obey()
            assert (await repair(client, ledger_id, "b d")).outcome is RepairOutcome.REPAIRED
            assert absent_copies(cluster, ledger_id, await cluster.metadata_of(ledger_id)) == []

    run(main())
