"""The virtual loop: time, order, killing, and what it says when it is stuck."""

from __future__ import annotations

import asyncio

import pytest

from triplicate.sim.virtual_loop import INSTANT_CALLBACKS_MAX, Life, SimulationStuck, VirtualLoop, context_of


def test_time_moves_only_when_nothing_is_ready() -> None:
    loop = VirtualLoop()
    seen: list[float] = []

    async def main() -> None:
        await asyncio.sleep(3600.0)
        seen.append(loop.time())
        for _ in range(10):
            await asyncio.sleep(0)
        seen.append(loop.time())

    loop.run_until_complete(main())
    assert seen == [3600.0, 3600.0]


def test_timers_of_one_instant_run_in_the_order_of_their_making() -> None:
    loop = VirtualLoop()
    order: list[int] = []
    for number in range(50):
        loop.call_at(1.0, order.append, number)
    loop.run_forever()
    assert order == list(range(50))


def test_a_cancelled_timer_neither_runs_nor_moves_time() -> None:
    loop = VirtualLoop()
    loop.call_later(5.0, lambda: None).cancel()
    loop.run_forever()
    assert loop.time() == 0.0


def test_a_stuck_program_is_named_with_the_place_where_it_waits() -> None:
    loop = VirtualLoop()

    async def waits_for_ever() -> None:
        await asyncio.Event().wait()

    with pytest.raises(SimulationStuck, match=r"main in .*Event.wait line \d+"):
        loop.run_until_complete(waits_for_ever())


def test_a_program_without_end_is_stopped_and_its_busiest_task_named() -> None:
    loop = VirtualLoop(callbacks_max=1000)

    async def spins() -> None:
        while True:
            await asyncio.sleep(0)

    async def main() -> None:
        task = loop.start_task(spins(), name="spinner")
        await task

    with pytest.raises(SimulationStuck, match="spinner"):
        loop.run_until_complete(main())


def test_a_program_that_loops_in_one_instant_is_stopped_before_the_limit_of_all_callbacks() -> None:
    loop = VirtualLoop()

    async def spins() -> None:
        await asyncio.sleep(1.0)
        while True:
            await asyncio.sleep(0)

    async def main() -> None:
        await loop.start_task(spins(), name="spinner")

    with pytest.raises(SimulationStuck, match=r"at 1\.000000 s and no end in this instant; busiest: task spinner"):
        loop.run_until_complete(main())
    assert loop.callbacks_run < 2 * INSTANT_CALLBACKS_MAX


def test_a_program_that_lets_time_pass_may_run_as_many_callbacks_as_it_likes() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        for _ in range(INSTANT_CALLBACKS_MAX):
            await asyncio.sleep(0.0001)

    loop.run_until_complete(main())
    assert loop.callbacks_run > INSTANT_CALLBACKS_MAX


def test_virtual_time_is_bounded() -> None:
    loop = VirtualLoop(time_max_s=10.0)

    async def main() -> None:
        while True:
            await asyncio.sleep(1.0)

    with pytest.raises(SimulationStuck, match=r"10\.0 s"):
        loop.run_until_complete(main())


def test_a_timeout_of_asyncio_works_in_virtual_time() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30.0):
                await asyncio.Event().wait()

    loop.run_until_complete(main())
    assert loop.time() == 30.0


def test_a_killed_life_runs_nothing_more_not_even_its_finally_blocks() -> None:
    loop = VirtualLoop()
    life = Life("node")
    done: list[str] = []
    gate = asyncio.Event()

    async def child() -> None:
        try:
            await gate.wait()
            done.append("woken")
        finally:
            done.append("finally")

    async def node() -> None:
        loop.start_task(child(), name="child")
        loop.call_later(2.0, done.append, "timer")
        try:
            await asyncio.sleep(2.0)
        finally:
            done.append("finally of the parent")

    async def main() -> None:
        loop.start_task(node(), context=context_of(life))
        await asyncio.sleep(1.0)
        loop.kill(life)
        gate.set()
        await asyncio.sleep(5.0)
        assert done == []
        assert loop.pending_tasks() == [asyncio.current_task()]
        assert loop.pending_timers() == []

    loop.run_until_complete(main())
    assert done == []
    assert loop.failures == []
    loop.close()


def test_what_a_life_started_is_counted_until_it_ends() -> None:
    loop = VirtualLoop()
    life = Life("node")

    async def leaky() -> None:
        loop.start_task(asyncio.sleep(100.0), name="left over")

    async def main() -> list[str]:
        loop.start_task(leaky(), context=context_of(life))
        await asyncio.sleep(1.0)
        timers = loop.pending_timers()
        assert [timer.when() for timer in timers] == [100.0]
        return [task.get_name() for task in loop.pending_tasks()]

    assert loop.run_until_complete(main()) == ["main", "left over"]


def test_an_exception_that_nobody_awaits_is_a_failure() -> None:
    loop = VirtualLoop()

    def broken() -> None:
        raise ZeroDivisionError

    loop.call_soon(broken)
    loop.run_forever()
    assert [type(failure["exception"]) for failure in loop.failures] == [ZeroDivisionError]


def test_a_task_that_fails_unseen_is_a_failure_but_not_when_its_node_is_dead() -> None:
    async def fails() -> None:
        raise ZeroDivisionError

    for dead, expected in ((False, 1), (True, 0)):
        loop = VirtualLoop()
        life = Life("node")

        async def main(loop: VirtualLoop = loop, life: Life = life, dead: bool = dead) -> None:
            task = loop.start_task(fails(), context=context_of(life))
            await asyncio.sleep(1.0)
            if dead:
                loop.kill(life)
            del task

        loop.run_until_complete(main())
        loop._tasks.clear() if not dead else None
        loop.close()
        assert len(loop.failures) == expected


def test_threads_are_refused() -> None:
    loop = VirtualLoop()

    async def main() -> None:
        with pytest.raises(NotImplementedError):
            await asyncio.to_thread(lambda: None)

    loop.run_until_complete(main())
