"""Simulated hosts: streams of chance, workers, clocks, traces, crashes, and the identity of a run."""

from __future__ import annotations

import asyncio
import random

import pytest

from triplicate.sim.host import NodeDied, World, derive_seed
from triplicate.sim.loop import HostCrashed
from triplicate.sim.record import Recorder, canonical


def test_seeds_are_the_same_in_every_process() -> None:
    assert derive_seed(1, "bookie-1", "purpose") == derive_seed(1, "bookie-1", "purpose")
    assert derive_seed(7, "node", "x") == 5438501105224993510
    assert len({derive_seed(seed, node, purpose) for seed in range(10) for node in "abc" for purpose in "xyz"}) == 90


def test_a_draw_in_one_stream_does_not_shift_another() -> None:
    quiet, busy = World(5).start_host("a").port.entropy, World(5).start_host("a").port.entropy
    for _ in range(100):
        busy.stream("other").random()
    assert quiet.stream("ids").random() == busy.stream("ids").random()
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
    assert a.wall_us() - first == 2_500_000


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


def test_the_digest_covers_time_node_kind_and_facts() -> None:
    def digest(*facts: tuple[float, str, str, dict[str, object]]) -> str:
        times = [time_s for time_s, _, _, _ in facts]
        recorder = Recorder(lambda: times[0])
        for _, node, kind, values in facts:
            recorder.fact(node, kind, values)
            times.pop(0)
        return recorder.hexdigest()

    base = digest((1.0, "a", "x.y", {"n": 1, "m": 2}))
    assert base == digest((1.0, "a", "x.y", {"m": 2, "n": 1}))
    assert len({base, digest((1.5, "a", "x.y", {"n": 1, "m": 2})), digest((1.0, "b", "x.y", {"n": 1, "m": 2})), digest()}) == 4


def test_facts_are_recorded_in_a_form_without_addresses_and_set_order() -> None:
    words = [f"word-{number}" for number in range(50)]
    shuffled = list(words)
    random.Random(3).shuffle(shuffled)
    assert canonical(set(words)) == canonical(set(shuffled))
    assert canonical({"b": 1, "a": (True, None, b"x", 1.5)}) == "{'a': (True, None, b'x', 1.5), 'b': 1}"
    assert canonical(ValueError("no")) == "ValueError: no"
    with pytest.raises(TypeError, match="plain values"):
        canonical(object())


def test_a_timeline_reads_as_one_fact_a_line() -> None:
    recorder = Recorder(lambda: 1.25, facts_max=1)
    recorder.fact("bookie-1", "journal.roll", {"file": 3})
    recorder.fact("bookie-1", "journal.roll", {"file": 4})
    assert [str(fact).split() for fact in recorder.facts] == [["1.250000", "bookie-1", "journal.roll", "file=3"]]
    assert recorder.counts == {"journal.roll": 2}
