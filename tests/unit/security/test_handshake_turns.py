"""Turns among the TLS handshakes of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.waiting import PLAY_LIMIT_S
from triplicate.runtime import Clock, real_host, resolve
from triplicate.security import HandshakeTurns, TooManyHandshakes


class Connection:
    """A connection that a test ends."""

    def __init__(self) -> None:
        self.is_lost = False
        self._changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(self) -> None:
        self.is_lost = True
        resolve(self._changed, None)

    async def wait(self) -> None:
        await asyncio.shield(self._changed)


def play(scene: Callable[[Clock], Coroutine[Any, Any, None]]) -> None:
    async def body() -> None:
        async with asyncio.timeout(PLAY_LIMIT_S):
            await scene(real_host("test").clock)

    asyncio.run(body())


def test_one_that_ends_while_it_waits_gives_its_turn_to_the_next() -> None:
    async def scene(clock: Clock) -> None:
        turns, began = HandshakeTurns(clock, 1), clock.monotonic()
        assert await turns.wait(Connection(), began + 1000)
        gone = [Connection() for _ in range(100)]
        waiting = [asyncio.ensure_future(turns.wait(one, began + 1000)) for one in gone]
        await asyncio.sleep(0)
        for one in gone:
            one.end()
        assert await asyncio.gather(*waiting) == [False] * 100
        assert await turns.wait(Connection(), began + 1000)
        assert clock.monotonic() - began < 20

    play(scene)


def test_one_that_ends_at_the_moment_of_its_turn_has_ended() -> None:
    class Ending(Connection):
        async def wait(self) -> None:
            try:
                await super().wait()
            finally:
                self.is_lost = True  # As if the end were noticed in the same turn of the loop.

    async def scene(clock: Clock) -> None:
        turns = HandshakeTurns(clock, 50)
        for _ in range(50):
            assert await turns.wait(Connection(), clock.monotonic() + 1000)
        assert not await turns.wait(Ending(), clock.monotonic() + 1000)

    play(scene)


def test_a_turn_that_comes_too_late_is_refused_at_once_and_taken_by_nobody() -> None:
    async def scene(clock: Clock) -> None:
        turns, began = HandshakeTurns(clock, 1), clock.monotonic()
        assert await turns.wait(Connection(), began + 1000)
        for _ in range(50):
            with pytest.raises(TooManyHandshakes):
                await turns.wait(Connection(), began + 0.01)
        assert await turns.wait(Connection(), began + 1000)
        assert clock.monotonic() - began < 20

    play(scene)
