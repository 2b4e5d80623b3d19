"""How a copy learns how recent it is: when the log is asked, and what an answer says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from tests.unit.sql.held_log import SetClock
from tests.waiting import PLAY_LIMIT_S, eventually
from triplicate.errors import NotEnoughBookies
from triplicate.runtime import real_host
from triplicate.sql.engine.copy_progress import CopyProgress


def play(scene: Callable[[CopyProgress, SetClock], Coroutine[Any, Any, None]]) -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        clock = SetClock(host.clock)
        progress = CopyProgress(replace(host, clock=clock), "db")
        asking = asyncio.get_running_loop().create_task(progress.run())
        try:
            async with asyncio.timeout(PLAY_LIMIT_S):
                await scene(progress, clock)
        finally:
            asking.cancel()

    asyncio.run(body())


def waiter() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


def test_a_copy_is_as_recent_as_the_question() -> None:
    async def scene(progress: CopyProgress, clock: SetClock) -> None:
        async def slow() -> int:
            clock.now += 5.0
            return 0

        progress.find_end = slow
        began = clock.now
        await progress.news(waiter())
        assert progress.freshness.current_at == began
        assert progress.freshness.age_s(clock.now) == 5.0

    play(scene)


def test_nothing_is_asked_while_nobody_wants_to_know() -> None:
    async def scene(progress: CopyProgress, clock: SetClock) -> None:
        asked: list[int] = []

        async def counted() -> int:
            asked.append(1)
            return 7

        progress.find_end = counted
        progress.moved(3)
        await asyncio.sleep(0.05)
        assert not asked
        news = asyncio.get_running_loop().create_task(progress.news(waiter()))
        await eventually(lambda: len(asked) == 1)
        assert not news.done(), "the copy has not reached the end"
        progress.moved(7)
        await news
        assert progress.freshness.lacks == 0

    play(scene)


def test_a_failure_is_told_and_asked_again_after() -> None:
    async def scene(progress: CopyProgress, clock: SetClock) -> None:
        attempts: list[int] = []

        async def once_wrong() -> int:
            attempts.append(1)
            if len(attempts) == 1:
                raise NotEnoughBookies("too few bookies answer")
            return 0

        progress.find_end = once_wrong
        await progress.news(waiter())
        assert progress.failure == "too few bookies answer"
        await progress.news(waiter())
        assert progress.failure == ""
        assert progress.freshness.current_at == clock.now

    play(scene)


def test_the_copy_is_hurried_until_it_is_where_a_session_waits() -> None:
    async def scene(progress: CopyProgress, _: SetClock) -> None:
        hurried: list[int] = []
        progress.hurry = lambda: hurried.append(progress.position)
        progress.moved(1)
        reached = asyncio.ensure_future(progress.reach(3, waiter()))
        await eventually(lambda: hurried == [1])
        progress.moved(2)
        assert hurried == [1, 2]
        progress.moved(3)
        await reached
        progress.moved(4)
        assert hurried == [1, 2]

    play(scene)
