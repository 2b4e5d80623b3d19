"""Faults found by seeds, each reproduced by a forced schedule; the docstring names the fault."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from tests.simulation.log_rig import LOG, LogRig
from tests.simulation.log_rig import run_scenario as run_log_scenario
from tests.simulation.schedule import Schedule
from triplicate.bookie.storage.garbage import GarbageCollector
from triplicate.client import Client, LedgerReader
from triplicate.errors import BookieError, LedgerClosed, LedgerFenced
from triplicate.log import Logs, LogSettings, PageLimits, StagingOrigin
from triplicate.metadata import InjectedFault
from triplicate.runtime import TaskScope
from triplicate_simulator import Fault, Plan, run_seed
from triplicate_simulator.cluster.plan import BookieSetup
from triplicate_simulator.cluster.simulated_cluster import JOURNAL_DIRECTORY
from triplicate_simulator.faults.storage_faults import wipe
from triplicate_simulator.workloads.ledger.ledger_load import LedgerLoad
from triplicate_simulator.workloads.ledger.ledger_model import PASSWORD

TRASH = BookieSetup(trash_period_s=1000.0)
"""Bookies with which nothing that is deleted is lost before a schedule has ended."""


def test_a_bookie_may_die_during_its_start() -> None:
    """The simulator: a machine's death within its bookie's own start-up came out of the scenario as an error of its own."""
    struck_while_starting = 0
    for after in range(0, 12, 4):
        first = Fault("kill", 1.0, "bookie-1", lasts_s=0.1)
        second = Fault("crash_at", 1.101, "bookie-1", lasts_s=0.1, options={"operation": "any", "after": after})
        result = run_seed(after, Plan("ledgers", LedgerLoad(entries=20, ledgers=2), (first, second), 2.0))
        assert result.ok, str(result)
        trace = [fact.kind for fact in result.facts if fact.node == "bookie-1"]
        kinds = [kind for kind in trace if kind in ("host.start", "host.crash", "bookie.replayed")]
        lives = " ".join(kinds).split("host.start")
        struck_while_starting += any("host.crash" in life and "bookie.replayed" not in life for life in lives)
    assert struck_while_starting > 0


def test_a_stopping_bookie_survives_requests_for_ledgers_it_has_not_loaded() -> None:
    """Between the end of its tasks and the end of its connections, such a request raised out of the connection's protocol."""
    ledgers, late = 60, 0
    schedule = Schedule()

    async def read(reader: LedgerReader, name: str) -> None:
        with suppress(BookieError):
            await reader.read_from(name, 0)

    async def ask(client: Client) -> None:
        nonlocal late
        readers = []
        for _ in range(ledgers):
            writer = await client.create(password=PASSWORD)
            writer.abandon()
            readers.append(await client.open(writer.ledger_id, password=PASSWORD))
        name = readers[0].metadata.last_segment.ensemble[0]
        bookie = schedule.cluster.bookies[name]
        bookie.crash()
        await bookie.restart()
        await read(readers[0], name)
        # Something to be flushed on the way out, which takes its time.
        appender = await schedule.appender(client, "asker")
        appender.send(20)
        await appender.settled()
        stopping = schedule.world.loop.start_task(bookie.stop(), name="stop")
        async with TaskScope("questions") as scope:
            for reader in readers[1:]:
                late += not stopping.done()
                scope.spawn(read(reader, name), name="question")
                await asyncio.sleep(0.0005)
        await stopping
        bookie.crash()

    async def script() -> None:
        await schedule.begin("asker", ask)

    schedule.run(script)
    assert late > 0
    assert not schedule.world.loop.failures


@pytest.mark.parametrize("seed", [1, 2])
def test_a_journal_group_whose_sync_failed_survives_a_later_loss_of_power(seed: int) -> None:
    """The bookie's next life saw the group in the system's memory and numbered on behind it; no sync of its own ever saved it, so after
    a loss of power the group was missing between others, and the bookie refused to start (seeds 209 and 3414 of their day)."""
    schedule = Schedule(seed, reconnect_maximum_s=0.05)

    async def script() -> None:
        manual = await schedule.writing()
        await schedule.on("writer", lambda: manual.send(3))
        await manual.settled()
        name = manual.ensemble[0]
        bookie, disk = schedule.cluster.bookies[name], schedule.world.disk(name)
        bookie.excuse_failures()
        disk.fail_next_sync(JOURNAL_DIRECTORY)
        await schedule.on("writer", manual.send)
        while name not in manual.writer.missing_bookies:
            await asyncio.sleep(0.001)
        assert disk.failed_syncs == 1
        while manual.writer.missing_bookies:  # It is started again, and the writer takes it in again.
            await asyncio.sleep(0.001)
        for _ in range(5):
            await schedule.on("writer", manual.send)
            await asyncio.sleep(0.02)
        bookie.crash(keep_unsynced=False)
        await bookie.restart()
        assert bookie.alive, bookie.lost
        await manual.settled()

    schedule.run(script)
    assert not schedule.cluster.failures


def test_a_writer_that_was_cut_off_does_not_close_an_undeleted_ledger() -> None:
    """A ledger that was deleted and undeleted began at version 0 of its metadata again, which its first writer knew: its close took the end
    back to what it had heard of, behind entries that a recovery had found (seed 262)."""
    schedule = Schedule()

    async def script() -> None:
        manual = await schedule.writing()
        for _ in range(3):
            await schedule.on("writer", manual.send)
            await manual.settled()
        ledger_id = manual.ledger_id
        last = await schedule.recovering(ledger_id)
        assert last == 2

        async def bring_back(client: Client) -> None:
            schedule.model.ledgers[-1].deleted = True
            await client.delete(ledger_id)
            await client.undelete(ledger_id)

        await schedule.begin("operator", bring_back)

        async def close(client: Client) -> None:
            with suppress(LedgerClosed):
                await manual.writer.close()

        # As if it had been cut off before it heard of anything.
        manual.writer._pipeline.last_add_confirmed, manual.writer._pipeline.length = -1, 0
        await schedule.begin("writer", close)

        async def look(client: Client) -> int:
            async with await client.open(ledger_id, password=PASSWORD) as reader:
                return reader.last_add_confirmed

        assert await schedule.begin("reader", look) == last

    schedule.run(script)


def test_a_replaced_bookie_knows_that_a_ledger_in_the_trash_is_newer_than_its_disks() -> None:
    """Every ledger in the trash counted as older than the replacement, and the bookie keeps that answer. After the undeletion the bookie
    reported for good that it may have lost a ledger which it never lost (seed 20021)."""
    schedule = Schedule(storage=TRASH)

    async def script() -> None:
        await wipe(schedule.context, Fault("wipe", 0.0, "bookie-1", lasts_s=0.1))
        while not [fact for fact in schedule.world.recorder.facts if (fact.node, fact.kind) == ("bookie-1", "bookie.registered")][1:]:
            await asyncio.sleep(0.01)
        manual = await schedule.writing()
        assert "bookie-1" in manual.ensemble
        await schedule.on("writer", lambda: manual.send(3))
        await manual.settled()
        assert await schedule.recovering(manual.ledger_id) == 2
        await schedule.delete(manual)
        schedule.cluster.bookies["bookie-1"].crash(keep_unsynced=False)
        await schedule.cluster.bookies["bookie-1"].restart()
        await schedule.bring_back(manual)

    schedule.run(script)
    assert schedule.model.counts["undeletions"] == 1
    assert "doubtful_copies" not in schedule.model.counts


def test_a_replaced_bookie_does_not_treat_an_undeleted_old_ledger_as_new() -> None:
    """The undeleted ledger's node was created after the replacement, and a chosen id shows no age. The bookie therefore denied entries that
    it had lost (found by reading, after seed 20021)."""
    schedule = Schedule(storage=TRASH)

    async def script() -> None:
        manual = await schedule.writing(ledger_id=1_000_000)
        await schedule.on("writer", lambda: manual.send(3))
        await manual.settled()
        assert await schedule.recovering(manual.ledger_id) == 2
        await wipe(schedule.context, Fault("wipe", 0.0, "bookie-1", lasts_s=0.1))
        await schedule.delete(manual)
        await schedule.bring_back(manual)

    schedule.run(script)
    assert schedule.model.counts["doubtful_copies"] > 0, "it was asked, and said that it cannot know"


@pytest.mark.parametrize("collects", [True, False])
def test_the_time_limit_for_deleted_entries_includes_slow_metadata_reads(monkeypatch: pytest.MonkeyPatch, collects: bool) -> None:
    """A fault of the simulator: its limit added up the rounds' pauses only, but slow metadata lengthened the rounds of many ledgers
    (seed 20255 of its day). A bookie that never collects is still reported."""
    if not collects:

        async def collect_nothing(self: GarbageCollector) -> int:
            return 0

        monkeypatch.setattr(GarbageCollector, "collect", collect_nothing)
    load = LedgerLoad(
        writers=("plain",) * 8, entries=1, pause_mean_s=0.01, close_share=1.0, zombie_share=0.0, probe_pause_s=5.0, clears=True
    )
    storage = BookieSetup(trash_period_s=10.0, gc_interval_s=4.0)
    result = run_seed(1, Plan("ledgers", load, (), 20.0, metadata_high_s=0.2, storage=storage))
    assert result.counts["ledgers"] > 50
    assert len(result.violations) == (0 if collects else 5), str(result)
    assert all(violation.startswith("space: ") for violation in result.violations)


def test_the_time_limit_for_deleted_entries_includes_work_begun_on_a_slow_disk() -> None:
    """A fault of the simulator: work begun on a slow disk keeps its duration after the disk is quick again. A flush of 41 s delayed
    garbage collection beyond the limit (seed 23118 of its day)."""
    slow = Fault("disk_slow", 1.0, "bookie-1", lasts_s=2.0, options={"factor": 5000.0})
    load = LedgerLoad(
        writers=("plain",) * 4, entries=20, pause_mean_s=0.05, close_share=1.0, zombie_share=0.0, probe_pause_s=5.0, clears=True
    )
    result = run_seed(1, Plan("ledgers", load, (slow,), 5.0, storage=BookieSetup(gc_interval_s=1.0)))
    assert result.ok, str(result)
    assert result.counts["clearances"]


def test_a_tail_without_metadata_pauses_between_attempts() -> None:
    """The watch found no session to move to and returned, the tail called it again at once, and virtual time stood still."""
    schedule = Schedule()

    async def script() -> None:
        manual = await schedule.writing()
        for _ in range(3):  # Each one confirms those before it.
            await schedule.on("writer", manual.send)
            await manual.settled()
        read = 0

        async def follow(client: Client) -> None:
            nonlocal read
            async with await client.open(manual.ledger_id, password=PASSWORD) as reader:
                async for entry in reader.tail():
                    assert entry.entry_id == read
                    read += 1

        following = schedule.begin("follower", follow)
        while read < 2:
            await asyncio.sleep(0.01)
        schedule.cluster.cut_off["follower"] = 1
        assert schedule.cluster.client("follower").expire_session()
        before = schedule.world.loop.callbacks_run
        await asyncio.sleep(10.0)
        assert schedule.world.loop.callbacks_run - before < 20_000, "the follower has been busy with nothing"
        del schedule.cluster.cut_off["follower"]
        await schedule.on("writer", lambda: manual.send(3))
        await manual.settled()
        await schedule.recovering(manual.ledger_id)
        await following
        assert read == 6

    schedule.run(script)


def test_a_tail_cancelled_during_a_metadata_read_still_sees_the_ledgers_end() -> None:
    """The tail marked its knowledge as fresh before the answer came. After a time-out it did not ask again, and waited for ever."""
    schedule = Schedule()

    async def script() -> None:
        manual = await schedule.writing()
        for _ in range(3):  # Each one confirms those before it.
            await schedule.on("writer", manual.send)
            await manual.settled()
        read: list[int] = []
        given_up = 0

        async def follow(client: Client) -> None:
            nonlocal given_up
            async with await client.open(manual.ledger_id, password=PASSWORD) as reader, reader.tail() as tail:
                while True:
                    try:
                        async with asyncio.timeout(0.5):
                            read.append((await anext(tail)).entry_id)
                    except TimeoutError:
                        given_up += 1
                    except StopAsyncIteration:
                        return

        following = schedule.begin("follower", follow)
        while len(read) < 2:
            await asyncio.sleep(0.01)
        session_id, usual = schedule.cluster.client("follower").session_id, schedule.cluster.store.fault
        assert usual is not None
        held = 0

        def hold(session: int, operation: str, path: str) -> InjectedFault | None:
            nonlocal held
            fault = usual(session, operation, path)
            if fault is not None and session == session_id and operation == "get" and not held:
                held += 1
                fault.delay_before_s += 1.0
            return fault

        schedule.cluster.store.fault = hold
        host = schedule.cluster.client("writer").host
        assert host is not None
        await host.call(manual.appender.close())
        async with asyncio.timeout(10.0):
            await following
        assert held, "the metadata was not asked for"
        assert given_up
        assert read == [0, 1, 2]

    schedule.run(script)


def test_a_second_loss_of_the_ack_quorum_waits_as_long_as_the_first() -> None:
    """Two losses of the ack quorum within two add time-outs counted as one uninterrupted loss, although entries were confirmed between
    them, and the second ended the writer at once. Bookies restarted one after another were enough."""
    schedule = Schedule(add_timeout_s=3.0, reconnect_maximum_s=0.1)

    async def script() -> None:
        manual = await schedule.writing()
        await schedule.on("writer", lambda: manual.send(3))
        await manual.settled()
        gone, *restarted = (schedule.cluster.bookies[name] for name in manual.ensemble)
        gone.crash()
        dangers = 0
        for bookie in restarted:
            bookie.crash()
            await schedule.on("writer", lambda: manual.send(3))
            await asyncio.sleep(2.0)
            dangers += len(manual.writer.missing_bookies) == 2
            await bookie.restart()
            await manual.settled()
            await asyncio.sleep(0.5)
            await schedule.on("writer", manual.send)
            await manual.settled()
        assert dangers == 2

    schedule.run(script)


def test_a_sweep_keeps_a_page_that_a_change_has_referred_to_meanwhile() -> None:
    """A sweeper whose clock was ahead deleted a page as old that a change had just written and referred to. Without it the log's list was
    unreadable (seed 2073 of its day)."""

    async def scenario(rig: LogRig) -> None:
        # Few segments in the head, and no sweep of the writer's own.
        limits = PageLimits(recent=3, recent_kept=1, page_segments=2)
        looked, paged = asyncio.Event(), asyncio.Event()

        async def write(client: Client) -> None:
            logs = Logs(client, rig.settings, limits)
            async with await logs.writer(LOG, owner="writer") as writer:
                await writer.append(b"first" + b"." * 1000)
                await looked.wait()
                while not (await logs.head(LOG)).pages:
                    await writer.append(b"." * 1000)
                paged.set()

        async def sweep(client: Client) -> dict[str, int]:
            # A minimum age of zero stands for a sweeper that is paused until the page is old.
            return await Logs(client, replace(rig.settings, page_sweep_age_s=0.0), limits).sweep(LOG)

        usual = rig.cluster.store.fault
        assert usual is not None

        def fault(session: int, operation: str, path: str) -> InjectedFault | None:
            made = usual(session, operation, path)
            # The sweeper has read the head, and is about to list the pages.
            if made is not None and session == sweeper.session_id and operation == "children" and path.endswith(f"/logs/{LOG}/pages"):
                if not looked.is_set():
                    made.delay_before_s += 5.0
                looked.set()
            return made

        rig.cluster.store.fault = fault
        sweeper = rig.cluster.client("sweeper")
        writing = rig.world.loop.start_task(rig.cluster.client("writer").run(write), name="writer")
        await asyncio.sleep(0.5)
        sweeping = rig.world.loop.start_task(sweeper.run(sweep), name="sweeper")
        async with asyncio.timeout(4.0):
            await paged.wait()
        assert not sweeping.done(), "the page is older than the sweeper's look"
        assert (await sweeping)["pages"] == 0
        await writing
        found = await rig.read_all()
        assert found[0].startswith(b"first")

    run_log_scenario(scenario, 1, LogSettings(roll_size_bytes=1024, compression="none"))


def test_wall_times_do_not_go_back_after_a_truncation_of_every_segment() -> None:
    """The next writer had no last wall time, and its clock was behind: a search by time gave wrong results."""

    async def scenario(rig: LogRig) -> None:
        times: list[int] = []

        async def write(name: str, logs: Logs) -> None:
            async with await logs.writer(LOG, owner=name) as writer:
                first = await writer.append(name.encode())
            async with await logs.reader(LOG, first) as reader:
                entry = await reader.next_entry(20.0)
            assert entry is not None
            assert list(entry.values) == [name.encode()]
            times.append(entry.wall_time_us)

        async def truncate(logs: Logs) -> None:
            assert await logs.truncate(LOG, await logs.end_offset(LOG)) > 0
            assert await logs.segments(LOG) == []

        rig.world.clock("ahead").jump(1000.0)
        await rig.at("ahead", lambda logs: write("ahead", logs))
        await rig.at("truncator", truncate)
        await rig.at("behind", lambda logs: write("behind", logs))
        assert times == sorted(times)
        assert len(times) == 2

    run_log_scenario(scenario, 1)


def test_appends_keep_the_order_of_their_admission() -> None:
    """A waiting append got its room in one turn of the loop and its number in the next; a newer append in between was numbered first."""

    async def scenario(rig: LogRig) -> None:
        rig.settings = replace(rig.settings, window_entries=2)

        async def write(logs: Logs) -> None:
            async with await logs.writer(LOG, owner="writer") as writer, TaskScope("appends") as scope:
                full = [writer.append_entry_nowait([b"%d" % number]) for number in range(2)]

                async def append(value: bytes, *, behind: asyncio.Future[range] | None = None) -> range:
                    if behind is not None:
                        await behind
                    return await writer.append_entry([value])

                # The second is made as soon as there is room, in the turn that admits the first.
                second = scope.spawn(append(b"second", behind=full[0]), name="second")
                first = scope.spawn(append(b"first"), name="first")
                assert (await first).start < (await second).start

        await rig.at("writer", write)
        assert await rig.read_all() == [b"0", b"1", b"first", b"second"]

    run_log_scenario(scenario, 1)


def test_a_staging_ledger_whose_seal_fails_is_deleted_and_its_writer_released() -> None:
    """Leaving its block sealed the ledger. If that failed, the ledger was not deleted, and its writer stayed registered with the client."""

    async def scenario(rig: LogRig) -> None:
        staged = asyncio.get_running_loop().create_future()
        fenced = asyncio.Event()

        async def fence(client: Client) -> None:
            await (await client.recover(staged.result(), password=rig.settings.ledger_password.encode())).aclose()

        async def context(logs: Logs) -> None:
            async with await logs.staging(StagingOrigin(LOG, "app")) as writer:
                staged.set_result(writer.ledger_id)
                await fenced.wait()
                await writer.append_many([b"x"])

        async def fail(logs: Logs) -> None:
            with pytest.raises(LedgerFenced):
                await context(logs)
            assert isinstance(logs.client, Client)
            assert [handle.ledger_id for handle in logs.client._writers.values() if not handle.is_finished] == []
            assert [ledger_id async for ledger_id in logs.client.ledger_ids()] == []

        staging = rig.at("driver", fail)
        await staged
        await rig.world.loop.start_task(rig.cluster.client("rival").run(fence), name="rival")
        fenced.set()
        await staging

    run_log_scenario(scenario, 1)


def test_bytes_to_a_closed_end_that_are_in_flight_at_the_end_are_no_leak() -> None:
    """A slow link had them for seven seconds; their end had been closed, so no node would have noticed them."""
    result = run_seed(98572)
    assert result.ok, str(result)
