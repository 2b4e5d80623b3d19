"""Copies that break the rules of placement: found, marked, moved by workers and by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from tests.unit.autorecovery.recovery_rig import PROMPT, absent_copies, is_marked, lose, repair, write_ledger
from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.autorecovery import Audit, AuditorMetrics, CopyPace, LedgerAudits, RepairOutcome, move_misplaced
from triplicate.client import Client
from triplicate.config import ClientSettings
from triplicate.errors import ArgumentError
from triplicate.ledger import Adherence, EnsembleSegment
from triplicate.wire import AddRequest, Status

RACKS = replace(QUICK, placement_policy="rack-aware", placement_enforced=True)
PREFERRED = replace(RACKS, placement_enforced=False)


@asynccontextmanager
async def racked(near: str = "abc", far: str = "") -> AsyncIterator[FakeCluster]:
    """Bookies on machines of their own, in the racks /near and /far by the table."""
    async with fake_cluster("") as cluster:
        for name in near:
            await add(cluster, name, "/near")
        for name in far:
            await add(cluster, name, "/far")
        yield cluster


async def add(cluster: FakeCluster, name: str, location: str) -> None:
    await cluster.add(name, f"127.0.0.{ord(name) - ord('a') + 1}")
    await cluster.metadata.network_locations.set(name, location)


async def filled(cluster: FakeCluster, entries: int = 20, *, sizes: tuple[int, int, int] = (3, 3, 2)) -> int:
    """A closed ledger with all copies, written without regard to racks."""
    async with cluster.client() as client:
        ledger_id = await write_ledger(client, entries, sizes=sizes)
        await cluster.settled(ledger_id, entries - 1, sizes[1])
    return ledger_id


async def adherence(cluster: FakeCluster, ledger_id: int, settings: ClientSettings = RACKS) -> Adherence:
    async with cluster.client(settings) as client:
        return (await client.placement.verdict(await cluster.metadata_of(ledger_id))).adherence


async def check_mended(cluster: FakeCluster, ledger_id: int, settings: ClientSettings = RACKS) -> None:
    assert await adherence(cluster, ledger_id, settings) is Adherence.STRICT
    assert absent_copies(cluster, ledger_id, await cluster.metadata_of(ledger_id)) == []
    assert not await is_marked(cluster, ledger_id)


async def names(cluster: FakeCluster, ledger_id: int) -> set[str]:
    return {name for segment in (await cluster.metadata_of(ledger_id)).segments for name in segment.ensemble}


async def notes(cluster: FakeCluster, ledger_ids: Iterable[int]) -> list[str]:
    found = [await cluster.metadata.repair_notes.get(ledger_id) for ledger_id in ledger_ids]
    return [note.reason for note in found if note is not None]


def audits_of(client: Client, name: str = "auditor", metrics: AuditorMetrics | None = None, *, dry_run: bool = False) -> LedgerAudits:
    pace = CopyPace(client.host.clock, 0)
    return LedgerAudits(client, pace, metrics or AuditorMetrics(None), dry_run=dry_run, marks_misplaced_as=name)


# The worker.


@pytest.mark.parametrize("sizes", [(3, 3, 2), (4, 2, 2)])
def test_a_worker_moves_what_a_mark_without_bookies_is_about(sizes: tuple[int, int, int]) -> None:
    async def main() -> None:
        async with racked("abcdef"[: sizes[0]]) as cluster:
            ledger_id = await filled(cluster, sizes=sizes)
            for name in "wxyz":
                await add(cluster, name, "/far")
            async with cluster.client(RACKS) as client:
                repaired = await repair(client, ledger_id, "")
                assert repaired.outcome is RepairOutcome.REPAIRED, repaired.reason
                assert repaired.fragments == (1 if sizes[0] == 3 else 2)
                assert await names(cluster, ledger_id) & set("wxyz")
            await check_mended(cluster, ledger_id)

    run(main())


def test_a_ledger_that_keeps_the_rules_loses_its_mark_and_nothing_moves() -> None:
    async def main() -> None:
        async with racked("abc", "d") as cluster, cluster.client() as client:
            ledger_id = await filled(cluster)
            before = await cluster.metadata_of(ledger_id)
            repaired = await repair(client, ledger_id, "")
            assert (repaired.outcome, repaired.entries) == (RepairOutcome.REPAIRED, 0)
            assert await cluster.metadata_of(ledger_id) == before

    run(main())


def test_without_a_bookie_elsewhere_the_mark_stays_with_the_reason() -> None:
    async def main() -> None:
        async with racked("abcd") as cluster, cluster.client(RACKS) as client:
            ledger_id = await filled(cluster)
            before = await cluster.metadata_of(ledger_id)
            repaired = await repair(client, ledger_id, "")
            assert repaired.outcome is RepairOutcome.FAILED
            assert "needs 3 different machines and 2 racks for each entry" in repaired.reason
            assert await cluster.metadata_of(ledger_id) == before
            assert await is_marked(cluster, ledger_id)

    run(main())


def test_a_target_that_fails_leaves_the_old_copy_named() -> None:
    async def main() -> None:
        async with racked("abc") as cluster, cluster.client(RACKS) as client:
            ledger_id = await filled(cluster)
            before = await cluster.metadata_of(ledger_id)
            await add(cluster, "d", "/far")
            cluster["d"].when(AddRequest, Status.IO_ERROR)
            repaired = await repair(client, ledger_id, "")
            assert repaired.outcome is RepairOutcome.FAILED
            assert await cluster.metadata_of(ledger_id) == before
            assert await is_marked(cluster, ledger_id)

    run(main())


def test_a_change_of_the_segment_meanwhile_is_not_undone_and_planned_again() -> None:
    """While copies go to the far rack, another worker replaces another bookie of the segment by one that is there, too."""

    async def main() -> None:
        async with racked("abc") as cluster, cluster.client(RACKS) as client:
            ledger_id = await filled(cluster)
            await add(cluster, "y", "/far")
            cluster["y"].when(AddRequest, "hold", entry_id=3)
            moving = asyncio.ensure_future(repair(client, ledger_id, ""))
            await eventually(lambda: bool(cluster["y"].held))
            await add(cluster, "z", "/far")
            found = await cluster.metadata.ledgers.get(ledger_id)
            ensemble = found.value.last_segment.ensemble
            other = (*ensemble[:2], "z")
            cluster["z"].ledgers[ledger_id] = cluster[ensemble[2]].ledgers[ledger_id]
            await cluster.metadata.ledgers.update(ledger_id, replace(found.value, segments=(EnsembleSegment(0, other),)), found.version)
            cluster["y"].obey()
            assert (await moving).outcome is RepairOutcome.REPAIRED
            assert (await cluster.metadata_of(ledger_id)).last_segment.ensemble == other, "the other worker has mended it"

    run(main())


def test_the_open_segment_of_a_living_writer_is_neither_moved_nor_fenced() -> None:
    async def main() -> None:
        async with racked("abc") as cluster, cluster.client(RACKS) as client, cluster.client() as writing:
            writer = await writing.create(password=b"secret")
            for number in range(5):
                await writer.append(b"%d" % number)
            for name in "yz":
                await add(cluster, name, "/far")
            before = await cluster.metadata_of(writer.ledger_id)
            assert (await repair(client, writer.ledger_id, "")).outcome is RepairOutcome.REPAIRED
            report = await move_misplaced(client, settings=PROMPT)
            assert report.misplaced[0].open_segment
            assert report.repairs == ()
            assert report.refused == ()
            assert await cluster.metadata_of(writer.ledger_id) == before
            assert cluster.fenced(writer.ledger_id) == []
            await writer.append(b"more")
            await writer.close()
            assert (await repair(client, writer.ledger_id, "")).outcome is RepairOutcome.REPAIRED
            await check_mended(cluster, writer.ledger_id)

    run(main())


def test_uncertain_locations_move_nothing() -> None:
    async def main() -> None:
        async with racked("abc") as cluster, cluster.client(RACKS) as client:
            ledger_id = await filled(cluster)
            await add(cluster, "y", "/far")
            await cluster.metadata.network_locations.set("127.0.0.1", "/near")
            await cluster.add("q", "127.0.0.1")
            await cluster.metadata.network_locations.set("q", "/elsewhere")
            repaired = await repair(client, ledger_id, "")
            assert repaired.outcome is RepairOutcome.FAILED
            assert "the locations of bookies are not certain: machine 127.0.0.1 has several locations" in repaired.reason
            assert "y" not in await names(cluster, ledger_id)
            report = await move_misplaced(client, settings=PROMPT)
            assert report.repairs == ()

    run(main())


def test_lost_copies_are_made_again_before_others_move() -> None:
    async def main() -> None:
        async with racked("abc") as cluster, cluster.client(RACKS) as client:
            ledger_id = await filled(cluster)
            await lose(cluster, "b")
            await add(cluster, "d", "/near")
            for name in "yz":
                await add(cluster, name, "/far")
            report = await move_misplaced(client, settings=PROMPT)
            assert "b is not registered; its copies are made again first" in report.refused[0].refused[0]
            assert report.repairs == ()
            assert (await repair(client, ledger_id, "b")).outcome is RepairOutcome.REPAIRED
            await check_mended(cluster, ledger_id)

    run(main())


# The auditor.


def test_the_audit_marks_without_bookies_and_notes_the_reason() -> None:
    async def main() -> None:
        metrics = AuditorMetrics(None)
        async with racked("abc") as cluster:
            ledger_id = await filled(cluster)
            async with cluster.client(RACKS) as client:
                report = await audits_of(client, metrics=metrics).run(Audit.PLACEMENT)
                assert report.found == 1
                assert "no writable bookie outside the ensemble" in report.findings[0].reason
                assert not await is_marked(cluster, ledger_id), "no bookie mends it"
            await add(cluster, "y", "/far")
            async with cluster.client(RACKS) as client:
                assert (await audits_of(client, dry_run=True).run(Audit.PLACEMENT)).found == 1
                assert (await audits_of(client, name="").run(Audit.PLACEMENT)).found == 1
                assert not await is_marked(cluster, ledger_id)
                assert (await audits_of(client, metrics=metrics).run(Audit.PLACEMENT)).found == 1
                mark = await cluster.metadata.under_replication.get(ledger_id)
                assert mark is not None
                assert mark.missing == ()
                (reason,) = await notes(cluster, [ledger_id])
                assert reason.startswith("misplaced: from entry 0: 1 of 2 racks")
                assert metrics.misplaced._value.get() == 1
                assert (await repair(client, ledger_id, "")).outcome is RepairOutcome.REPAIRED
                assert (await audits_of(client, metrics=metrics).run(Audit.PLACEMENT)).found == 0
                assert metrics.misplaced._value.get() == 0

    run(main())


def test_a_missed_preference_is_marked_only_if_a_move_mends_it() -> None:
    async def main() -> None:
        async with racked("abcd") as cluster:
            ledger_id = await filled(cluster)
            async with cluster.client(PREFERRED) as client:
                assert (await audits_of(client).run(Audit.PLACEMENT)).found == 0
                assert not await is_marked(cluster, ledger_id)
            await add(cluster, "y", "/far")
            async with cluster.client(PREFERRED) as client:
                assert (await audits_of(client).run(Audit.PLACEMENT)).found == 1
                assert await is_marked(cluster, ledger_id)
                assert (await repair(client, ledger_id, "")).outcome is RepairOutcome.REPAIRED
            await check_mended(cluster, ledger_id, PREFERRED)

    run(main())


def test_a_mark_of_lost_copies_keeps_its_bookies_and_its_note() -> None:
    async def main() -> None:
        async with racked("abc") as cluster:
            ledger_id = await filled(cluster)
            await add(cluster, "y", "/far")
            await cluster.metadata.under_replication.mark(ledger_id, ["b"])
            await cluster.metadata.repair_notes.record(ledger_id, "failed: no bookie", "worker")
            async with cluster.client(RACKS) as client:
                await audits_of(client).run(Audit.PLACEMENT)
            mark = await cluster.metadata.under_replication.get(ledger_id)
            assert mark is not None
            assert mark.missing == ("b",)
            assert await notes(cluster, [ledger_id]) == ["failed: no bookie"]

    run(main())


# By hand.


def test_a_pass_by_hand_moves_the_copies_of_all_misplaced_ledgers() -> None:
    async def main() -> None:
        async with racked("abc") as cluster:
            ledger_ids = [await filled(cluster, 10) for _ in range(6)]
            await add(cluster, "y", "/far")
            good = await filled(cluster, 3, sizes=(1, 1, 1))
            async with cluster.client(RACKS) as client:
                dry = await move_misplaced(client, settings=PROMPT, dry_run=True)
                assert [one.ledger_id for one in dry.misplaced] == ledger_ids
                assert all((one.fragments, one.entries, one.targets) == (1, 10, ("y",)) for one in dry.misplaced)
                assert not any([await is_marked(cluster, ledger_id) for ledger_id in ledger_ids])
                report = await move_misplaced(client, settings=PROMPT)
                assert (len(report.repairs), report.unrepaired, report.refused) == (6, (), ())
                assert sum(one.entries for one in report.repairs) == 60
                for ledger_id in ledger_ids:
                    await check_mended(cluster, ledger_id)
                assert await notes(cluster, [*ledger_ids, good]) == []
                assert (await move_misplaced(client, settings=PROMPT)).misplaced == ()

    run(main())


def test_a_pass_by_hand_also_moves_copies_of_a_ledger_that_is_marked_for_others() -> None:
    async def main() -> None:
        async with racked("abc") as cluster, cluster.client(RACKS) as client:
            ledger_id = await filled(cluster)
            await add(cluster, "y", "/far")
            await cluster.metadata.under_replication.mark(ledger_id, ["b"])
            assert (await move_misplaced(client, settings=PROMPT)).unrepaired == ()
            await check_mended(cluster, ledger_id)

    run(main())


def test_a_worker_that_only_deletes_the_mark_is_not_believed() -> None:
    """As Apache's worker does without its setting for such ledgers."""

    async def main() -> None:
        async with racked("abc") as cluster, cluster.client(RACKS) as client:
            ledger_id = await filled(cluster)
            await add(cluster, "y", "/far")
            marks = cluster.metadata.under_replication
            thefts = 0
            honest = marks.mark

            async def stolen(ledger_id: int, missing: Iterable[str]) -> None:
                nonlocal thefts
                await honest(ledger_id, missing)
                thefts += 1
                if thefts == 1:
                    lock = await marks.lock(ledger_id, "another")
                    assert lock is not None
                    assert await marks.complete(lock)

            marks.mark = stolen  # type: ignore[method-assign]
            assert (await move_misplaced(client, settings=PROMPT)).unrepaired == ()
            assert thefts == 2
            await check_mended(cluster, ledger_id)

    run(main())


def test_without_a_bookie_the_pass_is_refused() -> None:
    async def main() -> None:
        async with fake_cluster("") as cluster, cluster.client(RACKS) as client:
            with pytest.raises(ArgumentError, match="no bookie is registered"):
                await move_misplaced(client, settings=PROMPT)

    run(main())
