"""Many lanes on few threads: order within a lane, turns between lanes, cancellation, and the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from triplicate.errors import HandleClosed
from triplicate.runtime import WorkerPool, real_host

LIMIT_S = 20.0


def run(body: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(LIMIT_S):
            await body

    asyncio.run(bounded())


def pool(threads: int) -> WorkerPool:
    return WorkerPool(real_host("node").new_worker, "shared", threads)


def test_a_lane_runs_its_functions_in_order_and_raises_where_they_are_awaited() -> None:
    async def body() -> None:
        shared = pool(3)
        lanes = [shared.serial_worker(f"lane {number}") for number in range(10)]
        order: list[list[int]] = [[] for _ in lanes]
        running = [0] * len(lanes)

        def work(place: int, number: int) -> int:
            running[place] += 1
            assert running[place] == 1, "two functions of one lane run at a time"
            order[place].append(number)
            running[place] -= 1
            return number * 2

        waiting = [lane.run(work, place, number) for number in range(30) for place, lane in enumerate(lanes)]
        assert [await answer for answer in waiting] == [number * 2 for number in range(30) for _ in lanes]
        assert order == [list(range(30))] * len(lanes)
        with pytest.raises(ZeroDivisionError):
            await lanes[0].run(lambda: 1 // 0)
        assert await lanes[0].run(work, 0, 5) == 10
        await shared.close()

    run(body())


def test_few_lanes_start_few_threads() -> None:
    async def body() -> None:
        shared = pool(8)
        lane = shared.serial_worker("only")
        names = {await lane.run(lambda: threading.current_thread().name) for _ in range(20)}
        assert names == {"node/shared-0"}
        await shared.close()

    run(body())


def test_a_function_that_runs_for_long_holds_one_thread_and_no_other_lane() -> None:
    async def body() -> None:
        shared = pool(2)
        release = threading.Event()
        slow = shared.serial_worker("slow").run(release.wait, LIMIT_S)
        others = [shared.serial_worker(f"other {number}") for number in range(5)]
        assert [await lane.run(lambda: 1) for lane in others] == [1] * 5
        release.set()
        assert await slow
        await shared.close()

    run(body())


def test_a_lane_with_much_work_does_not_keep_others_waiting() -> None:
    async def body() -> None:
        shared = pool(1)
        started: list[str] = []
        first = shared.serial_worker("first").run(started.append, "first")
        busy = shared.serial_worker("busy")
        waiting = [busy.run(started.append, "busy") for _ in range(20)]
        waiting.append(shared.serial_worker("late").run(started.append, "late"))
        for answer in [first, *waiting]:
            await answer
        assert started.index("late") <= 2
        await shared.close()

    run(body())


def test_a_cancelled_wait_does_not_end_its_function() -> None:
    async def body() -> None:
        shared = pool(2)
        lane = shared.serial_worker("lane")
        release = threading.Event()
        order: list[str] = []

        def first() -> None:
            release.wait(LIMIT_S)
            order.append("first")

        running = asyncio.ensure_future(lane.run(first))
        following = lane.run(order.append, "second")
        await asyncio.sleep(0)
        running.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        # The other thread is free: only the lane's order holds the second function back.
        await shared.serial_worker("other").run(lambda: None)
        assert order == []
        release.set()
        await following
        assert order == ["first", "second"]
        await shared.close()

    run(body())


def test_closing_waits_for_what_was_accepted_and_refuses_the_rest() -> None:
    async def body() -> None:
        shared = pool(1)
        lane, other = shared.serial_worker("lane"), shared.serial_worker("other")
        done: list[int] = []
        waiting = [lane.run(done.append, number) for number in range(3)]
        await lane.close()
        assert done == [0, 1, 2]
        with pytest.raises(HandleClosed):
            lane.run(done.append, 9)
        pending = other.run(done.append, 3)
        await shared.close()
        await shared.close()
        assert done == [0, 1, 2, 3]
        await pending
        with pytest.raises(HandleClosed):
            shared.serial_worker("late").run(done.append, 9)
        for answer in waiting:
            await answer

    run(body())
