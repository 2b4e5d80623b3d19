"""A coroutine that runs at once, as far as it need not wait; a task runs the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from triplicate.runtime import EagerWork, TasklessFuture, UninterruptedFuture, own_task, start_eagerly


def _spawn(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    return asyncio.get_running_loop().create_task(work)


def _no_task(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    raise AssertionError("nothing waits, so no task is made")


async def _turns(number: int = 4) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def test_work_that_need_not_wait_is_done_at_once_and_makes_no_task() -> None:
    async def body() -> None:
        done: list[str] = []

        async def inner() -> str:
            return "inner"

        async def work() -> None:
            done.append(await inner())

        assert start_eagerly(work(), _no_task) is None
        assert done == ["inner"]

    asyncio.run(body())


def test_an_error_before_the_first_wait_is_raised_in_the_caller() -> None:
    async def body() -> None:
        async def work() -> None:
            raise KeyError("early")

        with pytest.raises(KeyError, match="early"):
            start_eagerly(work(), _no_task)

    asyncio.run(body())


def test_a_task_runs_the_rest_and_has_its_result() -> None:
    async def body() -> None:
        first: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        second: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def work() -> int:
            return await first + await second

        task = start_eagerly(work(), _spawn)
        assert task is not None
        first.set_result(1)
        await _turns()
        assert not task.done()
        second.set_result(2)
        assert await task == 3

    asyncio.run(body())


def test_an_error_of_the_awaited_future_is_raised_in_the_work() -> None:
    async def body() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def work() -> str:
            try:
                await future
            except KeyError:
                return "caught"
            return "missed"

        task = start_eagerly(work(), _spawn)
        assert task is not None
        future.set_exception(KeyError("late"))
        assert await task == "caught"

    asyncio.run(body())


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_cancellation_reaches_the_work_even_before_the_first_step_of_the_task(turns: int) -> None:
    async def body() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        seen: list[str] = []

        async def work() -> None:
            try:
                await future
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        task = start_eagerly(work(), _spawn)
        assert task is not None
        await _turns(turns)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen == ["cancelled"]
        assert future.cancelled()

    asyncio.run(body())


@pytest.mark.parametrize("turns", [0, 3])
def test_a_cancellation_waits_for_a_future_that_must_not_be_abandoned(turns: int) -> None:
    async def body() -> None:
        interrupted: list[bool] = []
        future: UninterruptedFuture[str] = UninterruptedFuture(lambda: interrupted.append(True))

        async def work() -> None:
            await future

        task = start_eagerly(work(), _spawn)
        assert task is not None
        await _turns(turns)
        task.cancel()
        await _turns()
        assert interrupted
        assert not task.done()
        future.set_result("ended")
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(body())


def test_a_bare_yield_of_the_work_takes_a_turn_of_the_loop() -> None:
    async def body() -> None:
        order: list[str] = []

        async def work() -> None:
            order.append("before")
            await asyncio.sleep(0)
            order.append("after")

        task = start_eagerly(work(), _spawn)
        assert task is not None
        order.append("caller")
        await task
        assert order == ["before", "caller", "after"]

    asyncio.run(body())


def test_work_that_needs_a_task_gets_one() -> None:
    async def body() -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

        async def work() -> None:
            assert asyncio.current_task() is None
            await own_task()
            async with asyncio.timeout(5):
                await asyncio.sleep(0)
            ended.set_result(None)

        # A callback of the loop belongs to no task.
        loop.call_soon(start_eagerly, work(), _spawn)
        await ended

    asyncio.run(body())


def test_own_task_returns_at_once_within_a_task() -> None:
    async def body() -> None:
        assert start_eagerly(own_task(), _no_task) is None

    asyncio.run(body())


class _Work:
    """A coroutine that records its steps while it waits for futures one after the other, and the tasks that are made for it."""

    def __init__(self, *futures: asyncio.Future[str]) -> None:
        self.futures = futures
        self.seen: list[str] = []
        self.waits = 0
        self.tasks: list[asyncio.Task[Any]] = []
        self.runner = EagerWork(self._spawn, self._note_wait)

    def start(self) -> None:
        self.runner.start(self._run())

    async def _run(self) -> None:
        for future in self.futures:
            try:
                self.seen.append(await future)
            except (KeyError, asyncio.CancelledError) as error:
                self.seen.append(type(error).__name__)
                if isinstance(error, asyncio.CancelledError):
                    raise

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.append(task)
        return task

    def _note_wait(self) -> None:
        self.waits += 1


def _taskless() -> TasklessFuture[str]:
    return TasklessFuture(loop=asyncio.get_running_loop())


def test_work_waits_for_taskless_futures_without_a_task() -> None:
    async def body() -> None:
        first, second = _taskless(), _taskless()
        work = _Work(first, second)
        work.start()
        first.set_result("one")
        assert work.seen == []  # It continues in a turn of the loop of its own, not inside of the caller.
        await _turns()
        assert (work.seen, work.waits) == (["one"], 2)
        second.set_exception(KeyError("late"))
        await _turns()
        assert (work.seen, work.tasks) == (["one", "KeyError"], [])
        work.runner.move_to_task()
        assert work.tasks == []  # Nothing is left of it.

    asyncio.run(body())


def test_a_task_runs_what_follows_any_other_wait() -> None:
    async def body() -> None:
        first, second, third = _taskless(), asyncio.get_running_loop().create_future(), _taskless()
        work = _Work(first, second, third)
        work.start()
        for future, value in ((first, "one"), (second, "two"), (third, "three")):
            future.set_result(value)
            await _turns()
        (task,) = work.tasks
        await task
        assert work.seen == ["one", "two", "three"]
        assert work.waits == 2  # The task's own waits are not counted.

    asyncio.run(body())


@pytest.mark.parametrize("resolved_first", [False, True])
def test_work_that_waits_without_a_task_can_be_moved_to_one(resolved_first: bool) -> None:
    async def body() -> None:
        future = _taskless()
        work = _Work(future)
        work.start()
        if resolved_first:
            future.set_result("one")
        work.runner.move_to_task()
        if not resolved_first:
            await _turns()
            future.set_result("one")
        (task,) = work.tasks
        await task
        assert work.seen == ["one"]  # Once: the callback is gone.

    asyncio.run(body())


def test_work_that_was_moved_to_a_task_is_cancelled_there() -> None:
    async def body() -> None:
        future = _taskless()
        work = _Work(future)
        work.start()
        work.runner.move_to_task()
        (task,) = work.tasks
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (work.seen, future.cancelled()) == (["CancelledError"], True)

    asyncio.run(body())
