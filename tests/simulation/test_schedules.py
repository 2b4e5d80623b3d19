"""Losses that need a certain order of events, forced here step by step: by slow and broken links, and at fault points."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from tests.simulation.schedule import Schedule
from triplicate.sim import NodeDied
from triplicate_simulator.checkers.ledger_promises import Acknowledged, MetadataWritten

RECOVERY_POINTS = (
    "client.recovery.marked",
    "client.recovery.fenced",
    "client.recovery.read_on",
    "client.recovery.copying",
    "client.recovery.copied",
    "client.recovery.closing",
)


def test_a_recovery_whose_first_fence_was_lost_fences_with_every_read() -> None:
    """BookKeeper issue 2614: the first fence to one bookie was lost, the reads behind it did not fence, and the writer reached its ack
    quorum there after the ledger had been closed without its entry."""
    schedule = Schedule()

    async def script() -> None:
        manual = await schedule.writing()
        silent, unfenced, holder = manual.ensemble
        # Entry 0 reaches the last bookie of its write set only.
        schedule.network.block("writer", silent)
        schedule.network.block("writer", unfenced)
        await schedule.on("writer", manual.send)
        await asyncio.sleep(0.2)
        # The recovery's first requests to the second bookie are lost. The first bookie's answers come late, after the link is restored.
        schedule.network.reset_at_next_write("recoverer", unfenced)
        schedule.network.slow(silent, "recoverer", 200.0)
        schedule.network.slow(holder, "recoverer", 20.0)
        last = await schedule.recovering(manual.ledger_id)
        assert last == -1, "two of three say no before the third is asked"
        schedule.network.unblock("writer", unfenced)
        await asyncio.sleep(1.0)
        schedule.network.unblock("writer", silent)
        await asyncio.sleep(1.0)
        assert manual.writer.failure is not None, "the writer did not learn that it is fenced"

    schedule.run(script)


@pytest.mark.parametrize("point", ["client.ensemble_change.chosen", "client.ensemble_change.written"])
def test_acknowledged_entries_survive_a_writers_death_during_an_ensemble_change(point: str) -> None:
    """BookKeeper issue 1591: while the metadata stalled, the writer continued with an ensemble that was not in the metadata."""
    schedule = Schedule(bookies=5, add_timeout_s=0.5)

    async def script() -> None:
        manual = await schedule.writing()
        await schedule.on("writer", lambda: manual.send(5))
        await manual.settled()
        barrier = schedule.points.hold(point, node="writer")
        gone = manual.ensemble[:2]
        for name in gone:
            schedule.cluster.bookies[name].crash()
        await schedule.on("writer", lambda: manual.send(5))
        await barrier.reached
        await schedule.on("writer", lambda: manual.send(5))
        await asyncio.sleep(0.4)
        assert manual.writer.last_add_confirmed == 4, "acknowledged by bookies that the metadata do not name"
        schedule.cluster.node("writer").crash()
        barrier.release()
        # The bookie that stayed is the only one that has the tail, if the change was written, or one of three.
        for name in gone:
            await schedule.cluster.bookies[name].restart()
        await schedule.recovering(manual.ledger_id)

    schedule.run(script)


def test_an_ensemble_confirms_nothing_before_the_metadata_name_it() -> None:
    """BookKeeper issue 1591, second part: the change of the metadata is slow, and the new bookies could answer long before it."""
    schedule = Schedule(bookies=5, add_timeout_s=0.5)

    async def script() -> None:
        manual = await schedule.writing(is_known=True)
        await schedule.on("writer", lambda: manual.send(5))
        await manual.settled()
        schedule.delay_changes(2.0)
        gone = manual.ensemble[:2]
        for name in gone:
            schedule.cluster.bookies[name].crash()
        await schedule.on("writer", lambda: manual.send(20))
        before = len(list(schedule.context.history.of(MetadataWritten)))
        while len(list(schedule.context.history.of(MetadataWritten))) == before:
            await asyncio.sleep(0.01)
            assert manual.writer.last_add_confirmed == 4, "acknowledged by bookies that the metadata do not name"
        schedule.cluster.node("writer").crash()
        schedule.delay_changes(0.0)
        for name in gone:
            await schedule.cluster.bookies[name].restart()
        await schedule.recovering(manual.ledger_id)

    schedule.run(script)


@pytest.mark.parametrize("point", RECOVERY_POINTS)
def test_another_recovery_completes_one_that_died_at_any_step(point: str) -> None:
    """Each recovery starts from bookies and metadata alone; copies of the first must not mislead the second."""
    for skip in (0, 1):
        schedule = Schedule(bookies=5)

        async def script(schedule: Schedule = schedule, skip: int = skip) -> None:
            manual = await schedule.writing()
            await schedule.on("writer", lambda: manual.send(3))
            await manual.settled()
            for name in manual.ensemble[1:]:
                schedule.network.block("writer", name)
            await schedule.on("writer", lambda: manual.send(20))
            await asyncio.sleep(0.2)
            schedule.cluster.node("writer").crash()
            schedule.points.trap(point, lambda node: schedule.cluster.node(node).crash(), node="first", skip=skip)
            first = schedule.recovering(manual.ledger_id, "first")
            with suppress(NodeDied):
                await first
            assert skip or first.exception() is not None, f"the recovery never came to {point}"
            await schedule.recovering(manual.ledger_id, "second")

        schedule.run(script)


@pytest.mark.parametrize("point", RECOVERY_POINTS)
def test_concurrent_recoveries_close_at_the_same_entry(point: str) -> None:
    """One pauses while another completes and closes; then it resumes with its old state."""
    schedule = Schedule(bookies=5)

    async def script() -> None:
        manual = await schedule.writing()
        await schedule.on("writer", lambda: manual.send(3))
        await manual.settled()
        # The tail is on one bookie, whose answers reach the second recoverer late.
        for name in manual.ensemble[1:]:
            schedule.network.block("writer", name)
        await schedule.on("writer", lambda: manual.send(10))
        await asyncio.sleep(0.2)
        schedule.cluster.node("writer").crash()
        schedule.network.slow(manual.ensemble[0], "second", 100.0)
        barrier = schedule.points.hold(point, node="first")
        first = schedule.recovering(manual.ledger_id, "first")
        await barrier.reached
        second = await schedule.recovering(manual.ledger_id, "second")
        barrier.release()
        assert await first == second

    schedule.run(script)


def test_a_recovery_proposes_no_segment_before_the_last() -> None:
    """A defect of the published specification of 4.13: all bookies of the last segment are empty and answer -1. The recovery then read
    from the first entry on. If a bookie failed while it copied those, it proposed a segment inside an older one."""
    schedule = Schedule(bookies=8, add_timeout_s=0.5)

    async def script() -> None:
        manual = await schedule.writing()
        await schedule.on("writer", lambda: manual.send(10))
        await manual.settled()
        before = manual.ensemble
        for name in before:
            schedule.cluster.bookies[name].crash(keep_unsynced=True)
        barrier = schedule.points.hold("client.ensemble_change.written", node="writer")
        await schedule.on("writer", manual.send)
        await barrier.reached
        schedule.cluster.node("writer").crash()
        barrier.release()
        for name in before:
            await schedule.cluster.bookies[name].restart()
        # If anything is copied, a bookie of the last segment fails, and is replaced.
        newest = list(schedule.context.history.of(MetadataWritten))[-1].segments[-1][1]
        schedule.points.trap("client.recovery.copying", lambda _: schedule.cluster.bookies[newest[0]].crash())
        assert await schedule.recovering(manual.ledger_id) == 9

    history = schedule.run(script)
    written = list(history.of(MetadataWritten))
    assert [first for first, _ in written[-1].segments] == [0, 10], "the circumstances are not those that were meant"


def test_fence_and_adds_that_arrive_together_leave_no_acknowledgement_unseen() -> None:
    """BookKeeper issue 4701: a bookie checked an add against the fence, was fenced and read, and then stored and acknowledged the add.
    In each round the adds leave a little later, up to the delay of the fence. The writer sends nothing more until the recovery ends."""
    acknowledged = 0
    for step in range(24):
        schedule = Schedule(seed=step)

        async def script(schedule: Schedule = schedule, step: int = step) -> None:
            manual = await schedule.writing()
            await schedule.on("writer", lambda: manual.send(2))
            await manual.settled()
            barrier = schedule.points.hold("client.recovery.marked", node="recoverer")
            recovery = schedule.recovering(manual.ledger_id)
            await barrier.reached
            barrier.release()
            await asyncio.sleep(0.0005 * step)
            await schedule.on("writer", lambda: manual.send(3))
            await recovery
            await asyncio.sleep(0.3)

        acknowledged += sum(1 for _ in schedule.run(script).of(Acknowledged)) - 2
    assert 0 < acknowledged < 3 * 24, "the fence was always the first, or always the last"
