"""Repairs that move copies of living bookies, because their machines leave none for those of lost ones."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.unit.autorecovery.recovery_rig import absent_copies, is_marked, lose, repair, write_ledger
from tests.unit.client.cluster import FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.autorecovery import RepairOutcome
from triplicate.client import Client
from triplicate.ledger import EnsembleSegment
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


async def two_positions_that_depend_on_each_other(cluster: FakeCluster, client: Client) -> tuple[int, tuple[str, ...]]:
    """A ledger whose second and third bookie are lost; returns its id and its ensemble.

    The only bookie for the second position is x, on the machine of the third, and that for the third is z, on the machine of the last.
    """
    names = "abcdef"
    for number, name in enumerate(names):
        await cluster.add(name, f"127.0.0.{number + 2}")
    ledger_id = await write_ledger(client, 40, sizes=(6, 3, 2))
    await cluster.settled(ledger_id, 39)
    ensemble = (await cluster.metadata_of(ledger_id)).last_segment.ensemble
    await cluster.add("x", f"127.0.0.{names.index(ensemble[2]) + 2}")
    await cluster.add("z", f"127.0.0.{names.index(ensemble[5]) + 2}")
    for name in ensemble[1:3]:
        await lose(cluster, name)
    return ledger_id, ensemble


def test_a_bookie_chosen_beside_successors_of_others_is_named_together_with_them() -> None:
    """If the second lost bookie came back before its own successor is named, the first successor would stay beside it on one machine."""

    async def main() -> None:
        async with fake_cluster("") as cluster, cluster.client() as client:
            ledger_id, ensemble = await two_positions_that_depend_on_each_other(cluster, client)
            cluster["z"].when(AddRequest, "hold")
            repairing = asyncio.ensure_future(repair(client, ledger_id, " ".join(ensemble[1:3])))
            await eventually(lambda: bool(cluster["z"].held))
            assert (await cluster.metadata_of(ledger_id)).last_segment.ensemble == ensemble
            cluster["z"].obey()
            assert (await repairing).outcome is RepairOutcome.REPAIRED
            after = await cluster.metadata_of(ledger_id)
            assert after.last_segment.ensemble == (ensemble[0], "x", "z", *ensemble[3:])
            assert absent_copies(cluster, ledger_id, after) == []

    run(main())


def test_lost_copies_that_cannot_be_made_do_not_hold_back_those_that_can() -> None:
    async def main() -> None:
        async with fake_cluster("") as cluster, cluster.client() as client:
            ledger_id, ensemble = await two_positions_that_depend_on_each_other(cluster, client)
            for name in ensemble[3:5]:
                cluster[name].ledgers[ledger_id].entries.pop(2)
            cluster["x"].when(AddRequest, "hold")
            repairing = asyncio.ensure_future(repair(client, ledger_id, " ".join(ensemble[1:3])))
            await eventually(lambda: bool(cluster["x"].held))
            await cluster.add("y", "127.0.0.9")
            cluster["x"].obey()
            repaired = await repairing
            assert repaired.outcome is RepairOutcome.FAILED
            assert "entry 2 of ledger" in repaired.reason
            after = (await cluster.metadata_of(ledger_id)).last_segment.ensemble
            assert after == (ensemble[0], "y", *ensemble[2:])

    run(main())


def test_copies_whose_only_place_depends_on_copies_that_cannot_be_made_fail_with_them() -> None:
    async def main() -> None:
        async with fake_cluster("") as cluster, cluster.client() as client:
            ledger_id, ensemble = await two_positions_that_depend_on_each_other(cluster, client)
            for name in ensemble[3:5]:
                cluster[name].ledgers[ledger_id].entries.pop(2)
            repaired = await repair(client, ledger_id, " ".join(ensemble[1:3]))
            assert repaired.outcome is RepairOutcome.FAILED
            assert "entry 2 of ledger" in repaired.reason
            assert (await cluster.metadata_of(ledger_id)).last_segment.ensemble == ensemble

    run(main())


def test_a_bookie_chosen_beside_others_is_not_named_beside_their_successors() -> None:
    """While copies are made, another worker replaces another bookie of the segment by one on the machine of the target."""

    async def main() -> None:
        async with fake_cluster("") as cluster, cluster.client() as client:
            for name, machine in {"a": 2, "b": 3, "c": 4}.items():
                await cluster.add(name, f"127.0.0.{machine}")
            ledger_id = await write_ledger(client, 10)
            found = await cluster.metadata.ledgers.get(ledger_id)
            await cluster.settled(ledger_id, 9)
            first, second, third = found.value.last_segment.ensemble
            await cluster.add("d", "127.0.0.5")
            await lose(cluster, second)
            cluster["d"].when(AddRequest, "hold")
            repairing = asyncio.ensure_future(repair(client, ledger_id, second))
            await eventually(lambda: bool(cluster["d"].held))
            await cluster.add("e", "127.0.0.5")
            await cluster.add("f", "127.0.0.6")
            cluster["e"].ledgers[ledger_id] = cluster[third].ledgers[ledger_id]
            changed = replace(found.value, segments=(EnsembleSegment(0, (first, second, "e")),))
            await cluster.metadata.ledgers.update(ledger_id, changed, found.version)
            cluster["d"].obey()
            assert (await repairing).outcome is RepairOutcome.REPAIRED
            after = (await cluster.metadata_of(ledger_id)).last_segment.ensemble
            assert after[0] == first
            assert after[1] not in ("d", second)
            assert after[2] == "e"

    run(main())
