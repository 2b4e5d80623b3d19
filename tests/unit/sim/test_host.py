"""Simulated hosts: streams of chance, workers, clocks, pauses and crashes."""

from __future__ import annotations

import asyncio
import gc
import signal
import time
import weakref

import apsw
import pytest

from triplicate.runtime import deadline_after, sleep, timeout_at
from triplicate.sim.host import EPOCH_US, WALL_DRIFT_MAX, NodeDied, SimulatedHost, World, derive_seed
from triplicate.sim.virtual_loop import HostCrashed, SimulationStuck
from triplicate_simulator.cluster.simulated_cluster import ClusterOptions, SimulatedCluster


def test_seeds_are_the_same_in_every_process() -> None:
    assert derive_seed(1, "bookie-1", "purpose") == derive_seed(1, "bookie-1", "purpose")
    assert derive_seed(7, "node", "x") == 5438501105224993510
    assert len({derive_seed(seed, node, purpose) for seed in range(10) for node in "abc" for purpose in "xyz"}) == 90


def test_a_draw_in_one_stream_does_not_shift_another() -> None:
    faults_over, busy = World(5).start_host("a").port.entropy, World(5).start_host("a").port.entropy
    for _ in range(100):
        busy.stream("other").random()
    assert faults_over.stream("ids").random() == busy.stream("ids").random()
    assert World(5).start_host("b").port.entropy.stream("ids").random() != World(5).start_host("a").port.entropy.stream("ids").random()


def test_a_worker_runs_in_order_and_takes_virtual_time() -> None:
    world = World(1)
    host = world.start_host("a")
    ran: list[int] = []

    async def node() -> None:
        worker = host.port.new_worker("work")
        waits = [worker.run(ran.append, number) for number in range(5)]
        failing = worker.run(int, "no number")
        assert ran == []
        for wait in waits:
            await wait
        assert ran == list(range(5))
        with pytest.raises(ValueError, match="no number"):
            await failing
        await worker.close()
        assert world.loop.time() > 0.0

    async def main() -> None:
        await host.call(node())

    world.run(main())


def test_a_function_that_began_is_finished_though_its_waiter_left() -> None:
    world = World(1)
    host = world.start_host("a")
    world.disk("a").make_directory("/data")
    ran: list[str] = []

    def slow() -> None:
        file = host.port.disk.open("/data/f", create=True)
        file.append([b"x" * 4_000_000])
        ran.append("slow")

    async def wait(worker_result: object) -> None:
        assert asyncio.isfuture(worker_result)
        await worker_result

    async def node() -> None:
        worker = host.port.new_worker("work")
        task = host.start(wait(worker.run(slow)))
        await asyncio.sleep(0.001)
        assert ran == ["slow"]
        task.cancel()
        await worker.close()
        assert task.cancelled()

    async def main() -> None:
        await host.call(node())

    world.run(main())
    assert world.loop.failures == []


def test_wall_clocks_differ_between_nodes_and_run_with_virtual_time() -> None:
    world = World(1)
    a, b = world.start_host("a").port.clock, world.start_host("b").port.clock
    first = a.wall_us()
    assert first != b.wall_us()

    async def main() -> None:
        await asyncio.sleep(2.5)

    world.run(main())
    assert a.wall_us() - first == pytest.approx(2_500_000, abs=2.5 * WALL_DRIFT_MAX * 1e6)


def test_a_wall_clock_jumps_drifts_and_stays_wrong_over_a_crash_unlike_monotonic_time() -> None:
    world = World(1)
    host = world.start_host("a")
    clock = host.port.clock
    errors: list[float] = []

    def error_s() -> float:
        return (clock.wall_us() - EPOCH_US) / 1e6 - world.loop.time()

    async def main() -> None:
        host.drift_clock(0.0)
        errors.append(error_s())
        host.jump_clock(-30.0)
        errors.append(error_s())
        assert clock.monotonic() == world.loop.time() == 0.0
        host.drift_clock(0.01)
        await asyncio.sleep(100.0)
        assert clock.monotonic() == 100.0
        errors.append(error_s())
        host.drift_clock(-0.01)
        errors.append(error_s())
        await asyncio.sleep(100.0)
        errors.append(error_s())

    world.run(main())
    assert [round(error - errors[0], 4) for error in errors] == [0.0, -30.0, -29.0, -29.0, -30.0]
    host.crash()
    assert world.start_host("a").port.clock.wall_us() == clock.wall_us()


def test_a_paused_node_does_nothing_and_then_all_that_was_due_in_its_order() -> None:
    world = World(1)
    done: list[tuple[float, str]] = []

    async def node(host: SimulatedHost) -> None:
        host.port.clock.call_at(3.0, lambda: done.append((world.loop.time(), "timer of 3")))
        host.port.clock.call_at(2.0, lambda: done.append((world.loop.time(), "timer of 2")))
        host.port.clock.call_at(2.5, lambda: done.append((world.loop.time(), "cancelled"))).cancel()
        await asyncio.sleep(2.5)
        done.append((world.loop.time(), "slept"))
        await gate.wait()
        done.append((world.loop.time(), "woken"))
        await asyncio.sleep(1.0)
        done.append((world.loop.time(), "end"))

    gate = asyncio.Event()

    async def main() -> None:
        host = world.start_host("a")
        task = host.start(node(host))
        await asyncio.sleep(1.0)
        host.pause()
        host.pause()
        assert host.paused
        gate.set()
        await asyncio.sleep(9.0)
        assert done == []
        assert host.alive
        assert len(world.loop.pending_timers()) == 3
        assert task in world.loop.pending_tasks()
        host.resume()
        host.resume()
        assert not host.paused
        await task

    world.run(main())
    assert done == [(10.0, "timer of 2"), (10.0, "timer of 3"), (10.0, "slept"), (10.0, "woken"), (11.0, "end")]


def test_a_node_that_pauses_itself_finishes_only_what_it_is_at() -> None:
    world = World(1)
    done: list[str] = []

    async def node(host: SimulatedHost) -> None:
        host.pause()
        done.append("same callback")
        await asyncio.sleep(0)
        done.append("next")

    async def main() -> None:
        host = world.start_host("a")
        host.start(node(host))
        await asyncio.sleep(5.0)
        assert done == ["same callback"]
        host.resume()
        await asyncio.sleep(0.1)

    world.run(main())
    assert done == ["same callback", "next"]


def test_a_paused_node_can_be_killed_and_never_goes_on() -> None:
    world = World(1)
    done: list[str] = []

    async def node() -> None:
        try:
            await asyncio.sleep(2.0)
        finally:
            done.append("finally")

    async def main() -> None:
        host = world.start_host("a")
        task = host.start(node())
        await asyncio.sleep(1.0)
        host.pause()
        await asyncio.sleep(5.0)
        host.crash()
        assert not host.paused
        host.resume()
        await asyncio.sleep(5.0)
        assert not task.done()
        assert world.loop.pending_timers() == []
        assert world.loop.pending_tasks() == [asyncio.current_task()]
        assert world.start_host("a").alive

    world.run(main())
    assert done == []
    assert world.loop.failures == []
    world.close()


def test_a_worker_of_a_paused_node_finishes_its_call_and_answers_later() -> None:
    world = World(1)
    host = world.start_host("a")
    world.disk("a").make_directory("/data")
    done: list[tuple[float, str]] = []

    def write(name: str) -> None:
        host.port.disk.open(f"/data/{name}", create=True).append([b"x" * 4_000_000])

    async def node() -> None:
        worker = host.port.new_worker("work")
        for wait in [worker.run(write, "began"), worker.run(write, "queued")]:
            await wait
            done.append((world.loop.time(), "notified"))
        await worker.close()

    async def main() -> None:
        task = host.start(node())
        await asyncio.sleep(0.001)
        host.pause()
        await asyncio.sleep(5.0)
        assert "/data/began" in world.disk("a").names.live
        assert "/data/queued" not in world.disk("a").names.live
        assert done == []
        host.resume()
        await task

    world.run(main())
    assert len(done) == 2
    assert done[0][0] >= 5.0
    assert "/data/queued" in world.disk("a").names.live


def test_a_world_of_paused_nodes_says_that_they_are_paused() -> None:
    world = World(1)
    host = world.start_host("a")

    async def main() -> None:
        host.pause()
        await host.call(asyncio.sleep(1.0), name="work")

    with pytest.raises(SimulationStuck, match=r"a: work \(paused\) in "):
        world.run(main())
    world.close()


def kill_with_databases_open(opened: list[apsw.Connection]) -> weakref.ref[World]:
    """Play a world in which a bookie and another node die; returns it closed and out of hands."""
    world = World(1)
    cluster = SimulatedCluster(world, ClusterOptions(bookies=1))

    async def main() -> None:
        await cluster.start()
        cluster.bookies["bookie-1"].crash()
        host = world.start_host("other")

        async def node() -> None:
            opened.append(apsw.Connection(":memory:"))
            assert opened[0].execute("SELECT 1").get == 1

        await host.call(node())
        host.crash()

    world.run(main())
    world.close()
    return weakref.ref(world)


def test_a_world_is_freed_though_nodes_were_killed_with_their_databases_open() -> None:
    opened: list[apsw.Connection] = []
    freed = kill_with_databases_open(opened)
    with pytest.raises(apsw.ConnectionClosedError):
        opened[0].execute("SELECT 1")
    assert apsw.connection_hooks == []
    gc.collect()
    assert freed() is None


def test_a_callback_that_never_comes_back_is_given_up_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplicate.sim.watchdog.CALLBACK_CPU_MAX_S", 0.05)
    before = signal.getsignal(signal.SIGVTALRM)
    world = World(1)

    async def at_once() -> None: ...

    async def never_waits() -> None:
        while True:
            await at_once()

    async def main() -> None:
        await asyncio.sleep(1.5)
        await world.start_host("a").call(never_waits())

    with pytest.raises(SimulationStuck, match=r"at 1.500000 s a callback goes on without end: .*never_waits line \d+"):
        world.run(main())
    world.close()
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_a_long_run_of_short_callbacks_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplicate.sim.watchdog.CALLBACK_CPU_MAX_S", 0.05)
    world = World(1)

    async def main() -> None:
        began = time.process_time()
        while time.process_time() - began < 0.3:
            await asyncio.sleep(0.1)

    world.run(main())
    world.close()


def test_waiting_for_a_node_that_dies_says_so() -> None:
    world = World(1)
    host = world.start_host("a")

    async def main() -> None:
        world.loop.call_later(1.0, host.crash)
        with pytest.raises(NodeDied):
            await host.call(asyncio.sleep(10.0))
        assert not host.alive
        with pytest.raises(HostCrashed):
            host.start(asyncio.sleep(1.0))

    world.run(main())
    world.close()


def test_a_new_life_has_new_chances_and_the_old_disk() -> None:
    world = World(1)
    first = world.start_host("a")
    drawn = first.port.entropy.stream("ids").random()
    world.disk("a").make_directory("/data")
    first.crash()
    second = world.start_host("a")
    assert second.port.entropy.stream("ids").random() != drawn
    assert second.port.disk.exists("/data")
    with pytest.raises(HostCrashed):
        first.port.disk.exists("/data")
    with pytest.raises(HostCrashed):
        first.port.trace("ghost.speaks")


def test_a_process_that_died_alone_loses_nothing_of_what_it_wrote() -> None:
    world = World(1)
    host = world.start_host("a")
    world.disk("a").make_directory("/data")
    host.port.disk.open("/data/f", create=True).append([b"unsynced"])
    host.crash(keep_unsynced=True)
    assert world.start_host("a").port.disk.open("/data/f").pread(10, 0) == b"unsynced"


def test_a_monotonic_clock_runs_at_its_machines_rate_and_timers_and_deadlines_follow_it() -> None:
    world = World(1)
    host = world.start_host("a")
    clock = host.port.clock
    done: dict[str, tuple[float, float]] = {}

    def note(what: str) -> None:
        done[what] = (world.loop.time(), clock.monotonic())

    async def node() -> None:
        await sleep(clock, 10.0)
        note("slept at the right rate")
        host.set_clock_rate(2.0)
        await sleep(clock, 10.0)
        note("slept at twice the rate")
        with pytest.raises(TimeoutError):
            async with timeout_at(deadline_after(clock, 10.0)):
                await asyncio.Event().wait()
        note("timed out")
        clock.call_at(clock.monotonic() + 10.0, note, "timer that slowed down")
        clock.call_at(clock.monotonic() + 1.0, note, "cancelled").cancel()
        await sleep(clock, 5.0)
        host.set_clock_rate(0.5)
        await sleep(clock, 5.0)
        note("slept at half the rate")

    async def main() -> None:
        await host.call(node())
        await asyncio.sleep(1.0)

    world.run(main())
    assert done == {
        "slept at the right rate": (10.0, 10.0),
        "slept at twice the rate": (15.0, 20.0),
        "timed out": (20.0, 30.0),
        "timer that slowed down": (32.5, 40.0),
        "slept at half the rate": (32.5, 40.0),
    }
    crashed = clock.monotonic()
    host.crash()
    again = world.start_host("a").port.clock
    assert again.monotonic() == crashed, "the clock is the machine's"


def test_a_clock_that_was_never_wrong_shows_the_loops_own_time() -> None:
    world = World(1)
    clock = world.start_host("a").port.clock

    async def main() -> None:
        for seconds in (0.1, 0.7, 3.3):
            await asyncio.sleep(seconds)
            assert clock.monotonic() == world.loop.time()

    world.run(main())
    with pytest.raises(ValueError, match="does not run at"):
        world.clock("a").set_rate(0.0)


def test_deadlines_of_asyncio_are_the_loops_again_when_the_world_has_run() -> None:
    before = asyncio.timeout_at
    world = World(1)
    world.run(asyncio.sleep(1.0))
    assert asyncio.timeout_at is before
