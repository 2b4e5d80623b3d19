"""A bookie that is slow is not dead: it keeps its place, owes a bounded amount, and holds up nobody for ever."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, FakeBookie, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import LedgerWriter
from triplicate.client.connection.flush_scheduler import FlushScheduler
from triplicate.errors import WindowFull
from triplicate.sim.host import World
from triplicate.sim.virtual_loop import context_of
from triplicate.wire import AddRequest

LIMITED = replace(QUICK, channel_window_entries=8)


def members(writer: LedgerWriter) -> tuple[str, ...]:
    return writer.metadata.last_segment.ensemble


def adds(bookie: FakeBookie) -> int:
    return sum(isinstance(request, AddRequest) for request in bookie.seen)


async def fill(writer: LedgerWriter) -> None:
    """Append until there is no more room."""
    while True:
        try:
            writer.append_nowait(b"x")
        except WindowFull:
            return
        await asyncio.sleep(0.002)


def test_a_bookie_that_answers_late_but_in_time_keeps_its_place_and_sets_the_pace() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(replace(LIMITED, add_timeout_s=1.2)) as client:
            writer = await client.create()
            slow = cluster[members(writer)[1]]
            slow.when(AddRequest, "hold")
            answered = 0
            for _ in range(8):
                await fill(writer)
                assert adds(slow) - answered <= LIMITED.channel_window_entries
                await asyncio.sleep(0.2)
                answered = adds(slow)
                slow.release()
                await asyncio.sleep(0.02)
            assert (writer.ensemble_changes, writer.missing_bookies) == (0, ())
            slow.obey()
            await writer.close()

    run(main())


@pytest.mark.parametrize("names", ["abc", "abcd"], ids=["no spare", "a spare"])
def test_a_full_channel_holds_up_the_writer_no_longer_than_an_answer_may_take(names: str) -> None:
    async def main() -> None:
        settings = replace(LIMITED, add_timeout_s=1.2, suspect_s=60.0)
        async with fake_cluster(names) as cluster, cluster.client(settings) as client:
            writer = await client.create()
            slow = members(writer)[1]
            cluster[slow].when(AddRequest, "drop")
            began = asyncio.get_running_loop().time()
            await fill(writer)
            waiting = [asyncio.ensure_future(writer.append(b"y")) for _ in range(30)]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            held_s = asyncio.get_running_loop().time() - began
            assert held_s >= settings.add_timeout_s, "two bookies would be enough, but the third owes all that it may"
            for task in waiting:
                await task
            assert asyncio.get_running_loop().time() - began < 10 * settings.add_timeout_s
            assert adds(cluster[slow]) <= LIMITED.channel_window_entries
            if len(names) == 3:
                assert writer.missing_bookies == (slow,)
            else:
                await eventually(lambda: writer.ensemble_changes == 1)
                assert slow not in members(writer)

    run(main())


def test_room_at_one_of_two_slow_bookies_is_not_room() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(replace(LIMITED, add_timeout_s=10.0)) as client:
            writer = await client.create(ack_quorum=1)
            one, other = (cluster[name] for name in members(writer)[1:])
            for bookie in (one, other):
                bookie.when(AddRequest, "hold")
            await fill(writer)
            one.obey()
            await asyncio.sleep(0.05)
            with pytest.raises(WindowFull):
                writer.append_nowait(b"y")
            other.obey()
            await eventually(lambda: adds(other) == adds(one))
            await asyncio.sleep(0.02)
            await writer.append(b"y")

    run(main())


def test_a_slow_bookie_is_bounded_by_bytes_too() -> None:
    async def main() -> None:
        settings = replace(QUICK, channel_window_bytes=100_000, add_timeout_s=10.0)
        async with fake_cluster("abc") as cluster, cluster.client(settings) as client:
            writer = await client.create()
            slow = cluster[members(writer)[0]]
            slow.when(AddRequest, "hold")
            sent = 0
            while True:
                try:
                    writer.append_nowait(b"x" * 10_000)
                except WindowFull:
                    break
                sent += 10_000
                await asyncio.sleep(0.002)
            assert 90_000 <= sent <= 110_000
            slow.obey()
            await writer.close()

    run(main())


def test_a_writer_that_stood_still_does_not_blame_the_bookies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process was stopped right behind the sending of an add. In virtual time."""
    pauses: list[float] = []
    deliver = FlushScheduler.deliver

    def with_a_pause(scheduler: FlushScheduler) -> None:
        deliver(scheduler)
        while pauses:
            host.pause()
            world.loop.call_later(pauses.pop(), host.resume, context=context_of(None))

    async def on_host() -> None:
        async with fake_cluster("abcd", simulated=host.port) as cluster, cluster.client() as client:
            writer = await client.create()
            for _ in range(3):
                await writer.append(b"x")
                pauses.append(4 * QUICK.add_timeout_s)
                before = host.port.clock.monotonic()
                await writer.append(b"y")
                assert host.port.clock.monotonic() - before >= 4 * QUICK.add_timeout_s, "it stood still"
                await asyncio.sleep(QUICK.add_timeout_s)
                assert (writer.ensemble_changes, writer.missing_bookies) == (0, ())
            await writer.close()

    async def main() -> None:
        await host.call(on_host())

    monkeypatch.setattr(FlushScheduler, "deliver", with_a_pause)
    world = World(1)
    host = world.start_host("client")
    try:
        world.run(main())
    finally:
        world.close()


def test_a_bookie_that_is_silent_is_found_by_a_writer_that_stands_still_again_and_again() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            writer = await client.create()
            silent = members(writer)[1]
            cluster[silent].when(AddRequest, "drop")
            await writer.append(b"x")
            for _ in range(12):
                await asyncio.sleep(0.01)
                time.sleep(QUICK.add_timeout_s / 2)
            await eventually(lambda: writer.ensemble_changes == 1)
            assert silent not in members(writer)
            await writer.close()

    run(main())
