"""The bounded channel and the backoff. Source: trio's memory channels: cancellation is all or nothing."""

from __future__ import annotations

import asyncio
import random

import pytest

from triplicate.errors import ArgumentError, HandleClosed
from triplicate.runtime import Backoff, BoundedChannel


def test_items_come_out_in_order_and_putters_wait_for_room() -> None:
    async def body() -> None:
        channel: BoundedChannel[int] = BoundedChannel(2)
        assert channel.offer(0)
        assert channel.offer(1)
        assert not channel.offer(99)
        putters = [asyncio.ensure_future(channel.put(number)) for number in (2, 3, 4)]
        await asyncio.sleep(0)
        assert len(channel) == 2
        assert [await channel.get() for _ in range(5)] == [0, 1, 2, 3, 4]
        for putter in putters:
            await putter
        with pytest.raises(IndexError):
            channel.get_nowait()

    asyncio.run(body())


def test_a_new_putter_does_not_overtake_those_who_wait() -> None:
    async def body() -> None:
        channel: BoundedChannel[str] = BoundedChannel(1)
        await channel.put("first")
        waiting = asyncio.ensure_future(channel.put("second"))
        await asyncio.sleep(0)
        assert channel.get_nowait() == "first"
        assert not channel.offer("third")
        assert channel.get_nowait() == "second"
        await waiting

    asyncio.run(body())


def test_a_cancelled_putter_puts_nothing_and_a_cancelled_getter_takes_nothing() -> None:
    async def body() -> None:
        channel: BoundedChannel[int] = BoundedChannel(1)
        await channel.put(1)
        putter = asyncio.ensure_future(channel.put(2))
        await asyncio.sleep(0)
        putter.cancel()
        await asyncio.sleep(0)
        assert channel.get_nowait() == 1
        assert len(channel) == 0
        getters = [asyncio.ensure_future(channel.get()) for _ in range(2)]
        await asyncio.sleep(0)
        channel.offer(3)
        getters[0].cancel()  # It was told of the item, and does not want it any more: the other one must get it.
        assert await getters[1] == 3
        assert getters[0].cancelled()
        waiting = asyncio.ensure_future(channel.get())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        assert channel.offer(4)
        assert await channel.get() == 4

    asyncio.run(body())


def test_closing_lets_what_is_queued_be_got_and_ends_everybody_else() -> None:
    async def body() -> None:
        channel: BoundedChannel[int] = BoundedChannel(1)
        await channel.put(1)
        putter = asyncio.ensure_future(channel.put(2))
        await asyncio.sleep(0)
        channel.close()
        channel.close(ValueError("too late"))
        with pytest.raises(HandleClosed):
            await putter
        with pytest.raises(HandleClosed):
            channel.offer(3)
        with pytest.raises(HandleClosed):
            await channel.put(3)
        assert [item async for item in channel] == [1]
        with pytest.raises(HandleClosed):
            await channel.get()

    asyncio.run(body())


def test_closing_with_an_error_gives_it_to_everybody() -> None:
    async def body() -> None:
        channel: BoundedChannel[int] = BoundedChannel(1)
        getters = [asyncio.ensure_future(channel.get()) for _ in range(2)]
        await asyncio.sleep(0)
        channel.close(ValueError("broken"))
        for getter in getters:
            with pytest.raises(ValueError, match="broken"):
                await getter
        with pytest.raises(ValueError, match="broken"):
            async for _ in channel:
                pass

    asyncio.run(body())


def test_a_channel_needs_a_limit() -> None:
    with pytest.raises(ArgumentError):
        BoundedChannel(0)


def test_backoff_doubles_up_to_its_maximum_with_jitter_and_starts_again() -> None:
    backoff = Backoff(0.1, 1.0, random.Random(1))
    delays = [backoff.next_s() for _ in range(8)]
    for delay_s, step_s in zip(delays, [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0, 1.0], strict=True):
        assert step_s / 2 <= delay_s <= step_s
    assert backoff.attempts == 8
    assert len(set(delays)) == 8
    backoff.reset()
    assert backoff.attempts == 0
    assert backoff.next_s() <= 0.1
    for first_s, maximum_s in ((0, 1), (2, 1)):
        with pytest.raises(ArgumentError):
            Backoff(first_s, maximum_s, random.Random(1))
