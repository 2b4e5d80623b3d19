"""Waits for the loss of a peer that end and begin again, as while the metadata are unreachable."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from tests.unit.log.fake import Stage, play
from tests.unit.replica.election_rig import A_WHILE_S, INTERVAL_S
from tests.unit.replica.peer_rig import FAR, FakeNetwork
from triplicate.replica import FailureDetector
from triplicate.replica.core.silence import FLAP_FREE, SuspicionTimeout
from triplicate.replica.failure_detector import REFUSALS, SHORTEST_PAUSE_S
from triplicate.runtime import Network, TaskScope

LONG_S = 30.0
"""A limit that no test waits for."""


def silent_peer(stage: Stage, peers: FailureDetector, silent_s: float) -> None:
    """Let a peer have answered once, and then have been silent."""
    peer = peers._peer(FAR)
    peer.reached_s, peer.has_answered = stage.host.clock.monotonic(), True
    peer.silence.resume(stage.host.clock.elapsed(), silent_s)


def test_a_silence_that_came_to_nothing_goes_on_and_is_confirmed_on_a_new_connection() -> None:
    async def body(stage: Stage) -> None:
        network, loop = FakeNetwork("mute"), asyncio.get_running_loop()
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), INTERVAL_S, LONG_S)
        run = loop.create_task(peers.run())
        silent_peer(stage, peers, LONG_S)
        loss = await asyncio.wait_for(peers.gone(FAR), 5)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loss.spoken(), A_WHILE_S)
        loss.retract()
        before = len(network.lines)
        assert (await asyncio.wait_for(peers.gone(FAR), 5)).silent
        assert [line.asked for line in network.lines[before:]] == [1]
        run.cancel()

    play(body)


def test_a_silence_that_came_to_nothing_begins_again_with_an_answer() -> None:
    async def body(stage: Stage) -> None:
        network, loop = FakeNetwork("mute", "held"), asyncio.get_running_loop()
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), INTERVAL_S, LONG_S)
        run = loop.create_task(peers.run())
        silent_peer(stage, peers, LONG_S)
        loss = await asyncio.wait_for(peers.gone(FAR), 5)
        await asyncio.wait_for(loss.spoken(), 5)
        loss.retract()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peers.gone(FAR), A_WHILE_S)
        run.cancel()

    play(body)


def test_a_silence_of_which_nobody_knew_ends_with_the_answer_on_a_new_connection() -> None:
    """This node was cut off, and is not any more: the metadata answer, and the leader does."""

    async def body(stage: Stage) -> None:
        network, loop = FakeNetwork("held"), asyncio.get_running_loop()
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), INTERVAL_S, LONG_S)
        run = loop.create_task(peers.run())
        silent_peer(stage, peers, 2 * LONG_S)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peers.gone(FAR), A_WHILE_S)
        assert network.lines[0].asked > 2
        run.cancel()

    play(body)


def test_an_attempt_to_connect_from_before_a_wait_does_not_count_for_it() -> None:
    async def body(stage: Stage) -> None:
        network, loop, hanging = FakeNetwork("mute"), asyncio.get_running_loop(), asyncio.Event()
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), INTERVAL_S, LONG_S)
        silent_peer(stage, peers, LONG_S)
        attempt = peers._peer(FAR).attempt = loop.create_task(_wait(hanging))
        run = loop.create_task(peers.run())
        await asyncio.wait_for(peers.gone(FAR), 5)
        assert attempt.cancelled()
        assert len(network.lines) == 1
        run.cancel()

    play(body)


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


def test_refusals_count_while_nobody_waits() -> None:
    async def body(stage: Stage) -> None:
        network, loop = FakeNetwork("taken", "refused"), asyncio.get_running_loop()
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), INTERVAL_S, LONG_S)
        run = loop.create_task(peers.run())
        waiting = loop.create_task(peers.gone(FAR))
        while not network.lines:
            await asyncio.sleep(INTERVAL_S)
        waiting.cancel()
        async with asyncio.timeout(5):
            while len(network.dialled) <= REFUSALS:
                await asyncio.sleep(INTERVAL_S)
        dialled = len(network.dialled)
        assert not (await asyncio.wait_for(peers.gone(FAR), 5)).silent
        # One attempt may begin before the wait does.
        assert len(network.dialled) <= dialled + 2, "what was learned without a waiter counts"
        run.cancel()

    play(body)


def test_a_process_that_has_started_again_is_not_gone_by_earlier_refusals() -> None:
    """Its address refused while nobody waited. It listens, stands for election and leads before the next attempt to connect."""

    async def body(stage: Stage) -> None:
        network, loop = FakeNetwork("taken", "refused"), asyncio.get_running_loop()
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), INTERVAL_S)
        run = loop.create_task(peers.run())
        waiting = loop.create_task(peers.gone(FAR))
        while not network.lines:
            await asyncio.sleep(INTERVAL_S)
        waiting.cancel()
        while peers._peer(FAR).refusals < REFUSALS:
            await asyncio.sleep(0)
        network.answers = ["held"]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peers.gone(FAR), A_WHILE_S)
        assert network.lines[-1].asked > 0
        run.cancel()

    play(body)


def test_a_refusal_of_an_attempt_from_before_a_wait_does_not_end_it() -> None:
    async def body(stage: Stage) -> None:
        network, loop = FakeNetwork("refused"), asyncio.get_running_loop()
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), INTERVAL_S)
        peer = peers._peer(FAR)
        peer.reached_s, peer.refusals, peer.attempted_s = stage.host.clock.monotonic(), REFUSALS, stage.host.clock.elapsed()
        waiting = loop.create_task(peers.gone(FAR))
        await asyncio.sleep(0)
        await peers._connect(FAR, peer, "far.example", 5432)
        network.answers = ["held"]
        run = loop.create_task(peers.run())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waiting, A_WHILE_S)
        run.cancel()

    play(body)


def test_the_end_of_a_process_that_came_to_nothing_is_concluded_again() -> None:
    """The connection to the metadata broke while the leader's node was to be deleted."""

    async def body(stage: Stage) -> None:
        network, loop = FakeNetwork("taken", "refused"), asyncio.get_running_loop()
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), INTERVAL_S, LONG_S)
        run = loop.create_task(peers.run())
        for _ in range(3):
            loss = await asyncio.wait_for(peers.gone(FAR), 5)
            assert not loss.silent
            loss.retract()
        network.answers = ["held"]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peers.gone(FAR), A_WHILE_S)
        run.cancel()

    play(body)


@pytest.mark.parametrize("is_cancelled_first", [True, False])
def test_a_conclusion_that_comes_together_with_a_cancellation_is_not_lost(is_cancelled_first: bool) -> None:
    """The watch of the leader's node wakes when the connection to the metadata is back."""

    async def body(stage: Stage) -> None:
        network, loop = FakeNetwork("refused"), asyncio.get_running_loop()
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), INTERVAL_S, LONG_S)
        silent_peer(stage, peers, 0.0)
        waiting = loop.create_task(peers.gone(FAR))
        await asyncio.sleep(0)
        peers._peer(FAR).attempted_s = stage.host.clock.elapsed()
        await peers._connect(FAR, peers._peer(FAR), "far.example", 5432)
        if is_cancelled_first:
            waiting.cancel()
        await peers._connect(FAR, peers._peer(FAR), "far.example", 5432)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        run = loop.create_task(peers.run())
        assert not (await asyncio.wait_for(peers.gone(FAR), 5)).silent
        run.cancel()

    play(body)


def test_a_connection_that_ends_is_made_again_at_once() -> None:
    async def body(stage: Stage) -> None:
        network, loop = FakeNetwork("held", "refused"), asyncio.get_running_loop()
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), LONG_S)
        run = loop.create_task(peers.run())
        waiting = loop.create_task(peers.gone(FAR))
        async with asyncio.timeout(5):
            while not network.lines:
                await asyncio.sleep(INTERVAL_S)
            peers._peer(FAR).attempted_s -= LONG_S
            network.lines[0].protocol.connection_lost(None)
            while len(network.dialled) < 2:
                await asyncio.sleep(INTERVAL_S)
        waiting.cancel()
        run.cancel()

    play(body)


def test_the_pause_until_the_next_attempt_is_not_too_short_for_a_clock() -> None:
    async def body(stage: Stage) -> None:
        peers = FailureDetector(replace(stage.host, network=cast("Network", FakeNetwork("refused"))), LONG_S)
        async with TaskScope("peers") as scope:
            peer = peers._peer(FAR)
            peer.attempted_s = stage.host.clock.elapsed() - LONG_S / 2 + SHORTEST_PAUSE_S / 2
            assert peers._probe_peer(scope, FAR, peer) >= SHORTEST_PAUSE_S

    play(body)


def test_several_waiters_take_one_conclusion_back_once() -> None:
    suspicions = SuspicionTimeout(2.0)
    for number in range(FLAP_FREE):
        suspicions.conclude(float(number))
    suspicions.retract(1.0)
    suspicions.retract(1.0)
    assert suspicions.limit_s(4.0) == 2.0
    suspicions.conclude(4.0)
    assert suspicions.limit_s(5.0) == 4.0
