"""Forced schedules at named moments, each a way in which a log could lose records, duplicate them or stop."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from tests.examples import examples
from tests.simulation.log_rig import LOG, LogRig, append_until_failure, run_scenario
from tests.simulation.shared_runs import SharedRuns
from triplicate.client import Client
from triplicate.errors import ConnectionLost, LogFenced, LogOwned, TriplicateError
from triplicate.log import Logs, LogSettings, StagedLedger, StagingOrigin
from triplicate.metadata import InjectedFault
from triplicate.sim import NodeDied, SimulatedHost
from triplicate_simulator import plan_of, run_seed

SEEDS = range(1, 1 + examples(3))


def test_a_take_over_that_read_the_list_before_the_owner_rolled_starts_over() -> None:
    """The list changes between its reading and the fencing: the take-over must keep the records of the owner's new segment."""

    async def scenario(rig: LogRig) -> None:
        acknowledged: list[bytes] = []
        errors: list[TriplicateError] = []

        async def owner(logs: Logs) -> None:
            writer = await logs.writer(LOG, owner="owner")
            await append_until_failure(writer, "owner", acknowledged, errors)
            await writer.abandon()

        async def usurper(logs: Logs) -> int:
            async with await logs.writer(LOG, owner="usurper") as writer:
                assert writer.epoch == 2
                return writer.start_offset

        first = rig.at("owner", owner)
        await asyncio.sleep(0.1)
        barrier = rig.world.points.hold("log.recover_segment", node="usurper")
        second = rig.at("usurper", usurper)
        await barrier.reached
        before = len(acknowledged)
        await asyncio.sleep(0.5)
        barrier.release()
        start = await second
        await first
        assert len(acknowledged) > before, "the owner went on while the other waited"
        assert isinstance(errors[0], LogFenced)
        found = await rig.read_all()
        assert found[: len(acknowledged)] == acknowledged
        assert start == len(found)

    for seed in SEEDS:
        run_scenario(scenario, seed, LogSettings(roll_size_bytes=1024, roll_age_s=0.1, compression="none"))


def test_one_of_two_concurrent_take_overs_starts_over() -> None:
    """Both have fenced the same segment and made a ledger. The list accepts one of them; the other take-over fences that one in turn."""

    async def scenario(rig: LogRig) -> None:
        async def founder(logs: Logs) -> None:
            async with await logs.writer(LOG, owner="founder") as writer:
                await writer.append(b"founded")

        async def rival(name: str, logs: Logs) -> tuple[int, int]:
            writer = await logs.writer(LOG, owner=name)
            try:
                await writer.append(name.encode())
                await writer.close()
            except LogFenced:
                await writer.abandon()
            assert isinstance(logs.client, Client)
            assert all(handle.is_finished for handle in logs.client._writers.values()), "the ledger of the lost attempt is given up"
            return writer.epoch, writer.start_offset

        await rig.at("founder", founder)
        barriers = [rig.world.points.hold("log.head_change", node=name) for name in ("a", "b")]
        rivals = [rig.at(name, partial(rival, name)) for name in ("a", "b")]
        for barrier in barriers:
            await barrier.reached
        for barrier in barriers:
            barrier.release()
        results = [await task for task in rivals]
        assert sorted(epoch for epoch, _ in results) == [2, 3]
        found = await rig.read_all()
        assert found[0] == b"founded"
        assert sorted(found[1:]) in ([b"a", b"b"], [b"a"], [b"b"])
        assert max(results)[1] == len(found) - 1, "the last one wrote behind everything"

    for seed in SEEDS:
        run_scenario(scenario, seed)


@pytest.mark.parametrize("moment", ["log.roll", "log.head_change", "log.segment_header"])
def test_a_log_continues_after_its_writer_died_between_two_segments(moment: str) -> None:
    """Its new ledger exists, but is unlisted, or listed and empty: no acknowledged record may depend on it."""

    async def scenario(rig: LogRig) -> None:
        acknowledged: list[bytes] = []

        async def owner(logs: Logs) -> None:
            writer = await logs.writer(LOG, owner="owner")
            await append_until_failure(writer, "owner", acknowledged, [])

        async def heir(logs: Logs) -> None:
            async with await logs.writer(LOG, owner="heir") as writer:
                assert writer.start_offset >= len(acknowledged)
                await writer.append(b"heir")

        trap = rig.world.points.trap(moment, lambda node: rig.cluster.client(node).crash(silent=True), node="owner", skip=4)
        with pytest.raises(NodeDied):
            await rig.at("owner", owner)
        assert trap.fired
        await rig.at("heir", heir)
        found = await rig.read_all()
        assert acknowledged
        assert found[: len(acknowledged)] == acknowledged
        assert found[-1] == b"heir"
        await rig.at("sweeper", lambda logs: logs.sweep(LOG))
        assert await rig.read_all() == found, "the sweep took nothing that belongs to the log"

    for seed in SEEDS:
        run_scenario(scenario, seed, LogSettings(roll_size_bytes=1024, compression="none"))


@pytest.mark.parametrize("moment", ["log.roll", "log.segment_header"])
def test_a_writer_paused_between_two_segments_does_not_take_the_log_back(moment: str) -> None:
    """It resumes when the log has another owner: neither its roll nor the header of its new segment may succeed."""

    async def scenario(rig: LogRig) -> None:
        acknowledged: list[bytes] = []
        errors: list[TriplicateError] = []

        async def owner(logs: Logs) -> None:
            writer = await logs.writer(LOG, owner="owner")
            await append_until_failure(writer, "owner", acknowledged, errors)
            await writer.abandon()

        async def heir(logs: Logs) -> None:
            async with await logs.writer(LOG, owner="heir") as writer:
                for number in range(5):
                    await writer.append(b"heir %d" % number)
                owner_host().resume()
                await asyncio.sleep(5.0)
                await writer.append(b"heir 5")

        def pause(node: str) -> None:
            owner_host().pause()
            paused.set()

        def owner_host() -> SimulatedHost:
            host = rig.cluster.client("owner").host
            assert host is not None
            return host

        paused = asyncio.Event()
        rig.world.points.trap(moment, pause, node="owner", skip=3)
        first = rig.at("owner", owner)
        await paused.wait()
        await rig.at("heir", heir)
        await first
        assert isinstance(errors[0], LogFenced)
        found = await rig.read_all()
        assert found[: len(acknowledged)] == acknowledged
        assert found[-6:] == [b"heir %d" % number for number in range(6)]

    for seed in SEEDS:
        run_scenario(scenario, seed, LogSettings(roll_size_bytes=1024, compression="none"))


def test_opening_a_writer_fails_if_it_was_deposed_meanwhile() -> None:
    """A take-over that won the list fails if another writer's fence precedes its header: it waits for the header."""

    async def scenario(rig: LogRig) -> None:
        async def slow(logs: Logs) -> None:
            with pytest.raises(LogFenced):
                await logs.writer(LOG, owner="slow")

        async def fast(logs: Logs) -> None:
            async with await logs.writer(LOG, owner="fast") as writer:
                assert writer.epoch == 2
                await writer.append(b"fast")

        barrier = rig.world.points.hold("log.segment_header", node="slow")
        first = rig.at("slow", slow)
        await barrier.reached
        await rig.at("fast", fast)
        barrier.release()
        await first
        assert await rig.read_all() == [b"fast"]

    for seed in SEEDS:
        run_scenario(scenario, seed)


def test_a_take_over_cancelled_while_it_writes_its_header_leaves_no_writer() -> None:
    """Its bookies stop answering and its caller cancels it. The ledger stays listed, and the next take-over closes it."""

    async def scenario(rig: LogRig) -> None:
        bookies = list(rig.cluster.bookies)

        def cut(node: str) -> None:
            for bookie in bookies:
                rig.world.network.block(node, bookie)

        async def impatient(logs: Logs) -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await logs.writer(LOG, owner="impatient")
            assert isinstance(logs.client, Client)
            assert [handle.ledger_id for handle in logs.client._writers.values() if not handle.is_finished] == []
            for bookie in bookies:
                rig.world.network.unblock("impatient", bookie)

        async def heir(logs: Logs) -> None:
            async with await logs.writer(LOG, owner="heir") as writer:
                assert (writer.epoch, writer.start_offset) == (2, 0)
                await writer.append(b"heir")

        rig.world.points.trap("log.segment_header", cut, node="impatient")
        await rig.at("impatient", impatient)
        await rig.at("heir", heir)
        assert await rig.read_all() == [b"heir"]

    for seed in SEEDS:
        run_scenario(scenario, seed)


# Publishing.


async def context(logs: Logs, *values: bytes) -> StagedLedger:
    async with await logs.staging(StagingOrigin(LOG, "app")) as writer:
        await writer.append_many(values)
    return await writer.seal()


def lose_answer_of_head(rig: LogRig, *, times: int) -> list[str]:
    """The next changes of the log's head are applied, and their answers lost."""
    before, lost = rig.cluster.store.fault, list[str]()

    def fault(session: int, operation: str, path: str) -> InjectedFault | None:
        made = before(session, operation, path) if before is not None else None
        if operation == "multi" and path.endswith(f"/logs/{LOG}") and len(lost) < times:
            lost.append(path)
            made = made or InjectedFault()
            made.raise_after = ConnectionLost(f"{path}: the connection was lost")
        return made

    rig.cluster.store.fault = fault
    return lost


def test_a_publish_whose_answer_is_lost_is_listed_once_after_any_repeat() -> None:
    """The publisher repeats the publish within the call, while a rival publishes the same batch from other ledgers."""

    async def scenario(rig: LogRig) -> None:
        async def publisher(name: str, logs: Logs) -> bool:
            staged = await context(logs, name.encode() + b" 1", name.encode() + b" 2")
            published = await logs.publish(LOG, [staged], application="app", batch=1, publisher=name)
            assert (published.first_offset, published.end_offset) == (0, 2)
            if published.already:
                await logs.discard(LOG, [staged.ledger_id])
            return published.already

        barriers = [rig.world.points.hold("log.head_change", node=name) for name in ("a", "b")]
        tasks = [rig.at(name, partial(publisher, name)) for name in ("a", "b")]
        for barrier in barriers:
            await barrier.reached
        lost = lose_answer_of_head(rig, times=1)
        for barrier in barriers:
            barrier.release()
        already = [await task for task in tasks]
        assert lost
        assert sorted(already) == [False, True] or already == [True, True]
        found = await rig.read_all()
        assert found in ([b"a 1", b"a 2"], [b"b 1", b"b 2"])

    for seed in SEEDS:
        run_scenario(scenario, seed)


def test_an_abort_after_an_applied_commit_deletes_no_listed_ledger() -> None:
    """The driver dies before it learns that its batch is in the log; the clean-up must check the list."""

    async def scenario(rig: LogRig) -> None:
        staged: list[int] = []

        async def driver(logs: Logs) -> None:
            ledger = await context(logs, b"x", b"y")
            staged.append(ledger.ledger_id)
            await logs.publish(LOG, [ledger], application="app", batch=1, publisher="driver")
            raise AssertionError("the driver was to die before")

        async def cleaner(logs: Logs) -> None:
            assert await logs.discard(LOG, staged) == []
            published = await logs.publish(LOG, staged, application="app", batch=1, publisher="cleaner")
            assert published.already
            assert (published.first_offset, published.end_offset) == (0, 2)

        before = rig.cluster.store.fault

        def fault(session: int, operation: str, path: str) -> InjectedFault | None:
            made = before(session, operation, path) if before is not None else None
            if operation == "multi" and path.endswith(f"/logs/{LOG}") and staged:
                # The change is applied; its answer comes a day later, after the driver's end.
                made = made or InjectedFault()
                made.delay_after_s = 60.0
                rig.world.loop.call_later(1.0, rig.cluster.client("driver").crash)
            return made

        rig.cluster.store.fault = fault
        with pytest.raises(NodeDied):
            await rig.at("driver", driver)
        rig.cluster.store.fault = before
        await rig.at("cleaner", cleaner)
        assert await rig.read_all() == [b"x", b"y"]

    for seed in SEEDS:
        run_scenario(scenario, seed)


def test_a_publisher_that_dies_before_the_change_of_the_head_publishes_nothing() -> None:
    """Its ledgers and pages remain and are swept; the batch is published again from new ones."""

    async def scenario(rig: LogRig) -> None:
        async def driver(logs: Logs) -> None:
            ledger = await context(logs, b"first attempt")
            await logs.publish(LOG, [ledger], application="app", batch=1, publisher="driver")

        async def second(logs: Logs) -> None:
            ledger = await context(logs, b"second attempt")
            assert not (await logs.publish(LOG, [ledger], application="app", batch=1, publisher="second")).already
            assert (await logs.sweep(LOG))["ledgers"] == 1

        rig.world.points.trap("log.head_change", lambda node: rig.cluster.client(node).crash(), node="driver")
        with pytest.raises(NodeDied):
            await rig.at("driver", driver)
        await asyncio.sleep(5.0)
        await rig.at("second", second)
        assert await rig.read_all() == [b"second attempt"]

    for seed in SEEDS:
        run_scenario(scenario, seed)


def test_seeds_of_the_log_workload_show_no_violation(runs: SharedRuns) -> None:
    """A few seeds of the workload, which `test_seeds.py` judges, too; `triplicate sim run` runs many."""
    for seed in (43, 53):
        result = runs.result_of(seed)
        assert result.workload == "logs"
        assert result.ok, str(result)
        assert result.counts["take_overs"] > 2


@pytest.mark.parametrize("moment", ["log.roll", "log.head_change", "log.segment_header"])
@pytest.mark.parametrize("dies", [True, False])
def test_a_batch_is_listed_once_if_its_writer_dies_or_pauses(moment: str, dies: bool) -> None:
    """The publisher waits for the writer, and takes the log over when the writer's session has expired. The batch is listed only once.
    While the session lives, the publish times out, and the writer lists the batch at the next request."""

    async def scenario(rig: LogRig) -> None:
        acknowledged: list[bytes] = []
        begun, stop = asyncio.Event(), asyncio.Event()

        async def owner(logs: Logs) -> None:
            async with await logs.writer(LOG, owner="owner") as writer:
                while not stop.is_set():
                    value = b"owner %d" % len(acknowledged)
                    await writer.append(value)
                    acknowledged.append(value)
                    begun.set()

        async def publisher(logs: Logs) -> int:
            async with await logs.staging(StagingOrigin(LOG, "app")) as staging:
                await staging.append_many([b"batch 0", b"batch 1"])
                sealed = await staging.seal()
            try:
                published = await logs.publish(LOG, [sealed], application="app", batch=1)
            except LogOwned:
                assert not dies
                resume()
                published = await logs.publish(LOG, [sealed], application="app", batch=1)
            assert not published.already
            assert (await logs.publish(LOG, [sealed], application="app", batch=1)).already
            return published.first_offset

        def resume() -> None:
            host = rig.cluster.client("owner").host
            if host is not None and host.paused:
                host.resume()

        writing = rig.at("owner", owner)
        await begun.wait()

        def strike(node: str) -> None:
            host = rig.cluster.client(node).host
            assert host is not None
            if dies:
                rig.cluster.client(node).crash(silent=True)
            else:
                host.pause()

        trap = rig.world.points.trap(moment, strike, node="owner")
        first = await rig.at("publisher", publisher)
        assert trap.fired
        resume()
        stop.set()
        await asyncio.wait([writing])
        assert isinstance(writing.exception(), NodeDied if dies else LogFenced | None)
        found = await rig.read_all()
        assert found[first : first + 2] == [b"batch 0", b"batch 1"]
        theirs = [value for value in found if value.startswith(b"owner")]
        assert theirs[: len(acknowledged)] == acknowledged
        assert len(found) == len(theirs) + 2

    for seed in SEEDS:
        run_scenario(scenario, seed, LogSettings(compression="none"))


def test_encrypted_logs_keep_their_promises_while_keys_are_rotated() -> None:
    """Writers and publishers under faults, as in the seeds of plain logs; each writer rotates the key when it begins."""
    for seed in SEEDS:
        plan = plan_of(seed, "logs")
        result = run_seed(seed, replace(plan, load=replace(plan.load, encrypted=True)))
        assert result.ok, str(result)
        assert result.counts["acknowledged"] > 0


def test_an_encrypted_run_repeats() -> None:
    plan = plan_of(1, "logs")
    plan = replace(plan, load=replace(plan.load, encrypted=True), duration_s=10.0, faults=())
    assert run_seed(1, plan).digest == run_seed(1, plan).digest
