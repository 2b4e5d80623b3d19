"""A result that its waiter cannot abandon: a cancellation waits for it."""

from __future__ import annotations

import asyncio

import pytest

from triplicate.runtime import UninterruptedFuture


def test_a_cancellation_is_raised_when_the_result_is_there() -> None:
    async def body() -> None:
        asked: list[bool] = []
        future: UninterruptedFuture[int] = UninterruptedFuture(lambda: asked.append(True))
        order: list[str] = []

        async def wait() -> None:
            try:
                await future
            except asyncio.CancelledError:
                order.append("cancelled")
                raise

        task = asyncio.get_running_loop().create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert asked == [True, True]
        assert not task.done()
        order.append("result")
        future.set_result(1)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert order == ["result", "cancelled"]
        assert future.result() == 1

    asyncio.run(body())


def test_a_task_that_is_cancelled_before_it_waits_awaits_the_result_too() -> None:
    async def body() -> None:
        future: UninterruptedFuture[int] = UninterruptedFuture()
        steps: list[str] = []

        async def wait() -> None:
            me = asyncio.current_task()
            assert me is not None
            me.cancel()
            try:
                await future
            finally:
                steps.append("ended" if future.done() else "abandoned")

        task = asyncio.get_running_loop().create_task(wait())
        await asyncio.sleep(0.01)
        assert steps == []
        future.set_exception(ValueError("of the work"))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert steps == ["ended"]
        assert isinstance(future.exception(), ValueError)

    asyncio.run(body())


def test_without_a_cancellation_it_is_a_future_as_any_other() -> None:
    async def body() -> None:
        future: UninterruptedFuture[int] = UninterruptedFuture()
        asyncio.get_running_loop().call_soon(future.set_result, 3)
        assert await future == 3
        failed: UninterruptedFuture[int] = UninterruptedFuture()
        asyncio.get_running_loop().call_soon(failed.set_exception, ValueError("of the work"))
        with pytest.raises(ValueError, match="of the work"):
            await failed
        assert not future.cancel()

    asyncio.run(body())
