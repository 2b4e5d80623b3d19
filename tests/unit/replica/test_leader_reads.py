"""The reads of a leadership are confirmed by its lease or by a later append, and fail when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from tests.waiting import PLAY_LIMIT_S
from triplicate.errors import LogFenced
from triplicate.replica import LeaderReads
from triplicate.runtime import Clock


class Deposed(Exception):
    """The error of a room for a node that does not lead."""


@dataclass
class SetClock:
    now: float = 100.0

    def elapsed(self) -> float:
        return self.now


@dataclass
class Noops:
    """Entries without records, which a test acknowledges."""

    sent: list[asyncio.Future[None]] = field(default_factory=list)

    async def append(self) -> None:
        self.sent.append(asyncio.get_running_loop().create_future())
        await self.sent[-1]


Scene = Callable[[LeaderReads, SetClock, Noops], Coroutine[Any, Any, None]]


def play(scene: Scene, lease_s: float) -> None:
    async def body() -> None:
        clock, noops = SetClock(), Noops()
        async with asyncio.timeout(PLAY_LIMIT_S):
            await scene(LeaderReads(cast("Clock", clock), lease_s, noops.append, Deposed), clock, noops)

    asyncio.run(body())


def test_reads_are_confirmed_while_the_lease_of_an_append_lasts() -> None:
    async def scene(reads: LeaderReads, clock: SetClock, noops: Noops) -> None:
        assert not reads.is_confirmed(), "nothing was acknowledged yet"
        sent = reads.send()
        clock.now += 4.0
        reads.acknowledge(sent)
        assert reads.is_confirmed()
        assert reads.age_s() == 0.0
        clock.now += 1.0
        assert not reads.is_confirmed(), "the lease counts from the sending"
        assert reads.age_s() == 5.0

    play(scene, 5.0)


def test_a_read_that_waits_is_confirmed_by_a_no_op_that_is_sent_after_it() -> None:
    async def scene(reads: LeaderReads, clock: SetClock, noops: Noops) -> None:
        loop = asyncio.get_running_loop()
        running, first = loop.create_task(reads.run()), loop.create_task(reads.confirm())
        while not noops.sent:
            await asyncio.sleep(0)
        second = loop.create_task(reads.confirm())
        await asyncio.sleep(0)
        noops.sent[0].set_result(None)
        await first
        assert not second.done(), "the first entry was sent before it came"
        while len(noops.sent) < 2:
            await asyncio.sleep(0)
        noops.sent[1].set_result(None)
        await second
        running.cancel()

    play(scene, 0.0)


def test_reads_of_a_refused_append_wait_for_the_next_one() -> None:
    async def scene(reads: LeaderReads, clock: SetClock, noops: Noops) -> None:
        proof = reads.proof()
        reads.refuse(reads.send())
        assert not proof.done()
        reads.acknowledge(reads.send())
        await proof

    play(scene, 0.0)


def test_reads_fail_with_the_leadership() -> None:
    async def scene(reads: LeaderReads, clock: SetClock, noops: Noops) -> None:
        reads.acknowledge(reads.send())
        sent, on_its_way = reads.proof(), asyncio.get_running_loop().create_task(reads.noop())
        while not noops.sent:
            await asyncio.sleep(0)
        waiting = reads.proof()
        noops.sent[0].set_exception(LogFenced("another node leads"))
        with pytest.raises(LogFenced):
            await on_its_way
        reads.close()
        for proof in (sent, waiting):
            with pytest.raises(Deposed):
                await proof
        assert not reads.is_confirmed(), "the lease would hold"
        with pytest.raises(Deposed):
            await reads.confirm()

    play(scene, 60.0)
