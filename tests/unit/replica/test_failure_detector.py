"""Which peers are gone, and what an election makes of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import cast

import pytest

from tests.unit.log.fake import Stage, play
from tests.unit.replica.election_rig import A_WHILE_S, INTERVAL_S, PATH, DeafTree, election, gone_at_once, never_gone, trees_of
from tests.unit.replica.peer_rig import FAR, FakeNetwork
from triplicate.metadata import Tree
from triplicate.replica import Candidate, FailureDetector, PeerLoss, leader_of
from triplicate.replica.core.silence import BREAK_S, FLAP_FREE, FLAP_WINDOW_S, LATE_S, SilenceTimer, SuspicionTimeout
from triplicate.replica.failure_detector import REFUSALS, REMEMBERED_S
from triplicate.runtime import Network


def watched(
    network: FakeNetwork, addresses: list[str], wait_s: float = A_WHILE_S, limit_s: float = 0.0, interval_s: float = INTERVAL_S
) -> list[bool]:
    """Whether each of the waits for these addresses has ended after a while."""
    found: list[bool] = []

    async def body(stage: Stage) -> None:
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), interval_s, limit_s)
        loop = asyncio.get_running_loop()
        run = loop.create_task(peers.run())
        waits = [loop.create_task(peers.gone(address)) for address in addresses]
        await asyncio.wait(waits, timeout=wait_s)
        found.extend(wait.done() for wait in waits)
        for task in (*waits, run):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    play(body)
    return found


@pytest.mark.parametrize(
    ("answers", "is_gone"),
    [
        (["taken", "refused"], True),
        (["unreachable", "taken", "unreachable", "refused"], True),
        (["taken"], False),
        (["refused"], False),
        (["unreachable"], False),
        (["taken", "unreachable"], False),
        (["taken", "refused", "taken"], False),
        (["taken", "refused", "unreachable", "refused", "taken"], False),
        (["malformed"], False),
        (["malformed", "taken", "refused"], True),
    ],
)
def test_a_peer_is_gone_when_its_address_refuses_after_it_was_reached(answers: list[str], is_gone: bool) -> None:
    assert watched(FakeNetwork(*answers), [FAR], wait_s=5.0 if is_gone else A_WHILE_S) == [is_gone]


def test_a_refusal_that_comes_between_two_waits_is_not_lost() -> None:
    async def body(stage: Stage) -> None:
        network = FakeNetwork("refused")
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), INTERVAL_S)
        run = asyncio.get_running_loop().create_task(peers.run())
        peer = peers._peer(FAR)
        peer.reached_s, peer.refusals = stage.host.clock.monotonic(), REFUSALS - 1
        await peers._connect(FAR, peer, "far.example", 5432)
        loss = await asyncio.wait_for(peers.gone(FAR), 10)
        assert not loss.silent
        run.cancel()

    play(body)


def test_one_connection_serves_all_that_wait_for_a_peer() -> None:
    network = FakeNetwork("taken", "taken", "refused")
    assert watched(network, [FAR] * 500, wait_s=5.0) == [True] * 500
    assert network.dialled == [("far.example", 5432)] * 4


def test_a_peer_stays_reached_where_the_wait_for_it_begins_again_and_is_forgotten_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is when the metadata were away for a moment: every watch wakes, and every wait is a new one."""
    monkeypatch.setattr("triplicate.replica.failure_detector.LINGER_S", INTERVAL_S)

    async def body(stage: Stage) -> None:
        network, loop = FakeNetwork("taken"), asyncio.get_running_loop()
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), INTERVAL_S)
        run = loop.create_task(peers.run())
        for address in (FAR, "never:1"):
            with suppress(TimeoutError):
                await asyncio.wait_for(peers.gone(address), A_WHILE_S)
        network.answers = ["refused"]
        again = loop.create_task(peers.gone(FAR))
        await asyncio.wait_for(again, 5)
        # The peer is not found gone again before it was reached again.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peers.gone(FAR), A_WHILE_S)
        for peer in peers._peers.values():
            peer.reached_s = stage.host.clock.monotonic() - REMEMBERED_S - 1
        with suppress(TimeoutError):
            await asyncio.wait_for(peers.gone("other:1"), A_WHILE_S)
        assert list(peers._peers) == ["other:1"]
        run.cancel()
        with suppress(asyncio.CancelledError):
            await run

    play(body)


def test_a_text_that_is_no_address_names_no_process() -> None:
    network = FakeNetwork("refused")
    assert watched(network, ["", "far.example", "far.example:", "far.example:sql"]) == [False] * 4
    assert not network.dialled


def test_an_ipv6_address_is_dialled_without_its_brackets() -> None:
    network = FakeNetwork("taken", "refused")
    assert watched(network, ["[::1]:5432"], wait_s=5.0) == [True]
    assert network.dialled[0] == ("::1", 5432)


# Silence.

LIMIT_S = 0.6
"""More than any one look counts for, so a test machine that stands still does not make a peer silent."""


@pytest.mark.parametrize(
    ("answers", "is_gone"),
    [
        (["once"], True),
        (["taken", "mute"], True),
        (["taken", "swallowed"], True),
        # A process that accepts connections and never answered may be any program.
        (["mute"], False),
        (["held"], False),
        (["taken"], False),
        # Trouble on this side leaves no question open.
        (["taken", "unreachable"], False),
        (["taken", "malformed"], False),
    ],
)
def test_a_peer_is_silent_when_it_leaves_questions_open_after_it_answered_one(answers: list[str], is_gone: bool) -> None:
    assert watched(FakeNetwork(*answers), [FAR], wait_s=5.0 if is_gone else 3 * LIMIT_S, limit_s=LIMIT_S) == [is_gone]


def test_a_peer_that_has_answered_late_may_be_silent_for_longer() -> None:
    assert watched(FakeNetwork("late"), [FAR], wait_s=2.0, limit_s=LIMIT_S) == [False]
    assert watched(FakeNetwork("late"), [FAR], wait_s=10.0, limit_s=LIMIT_S) == [True]


def test_silence_is_no_end_where_it_is_not_judged() -> None:
    assert watched(FakeNetwork("once"), [FAR], wait_s=3 * LIMIT_S) == [False]


def test_the_pause_between_two_questions_is_no_silence() -> None:
    assert watched(FakeNetwork("held"), [FAR], wait_s=1.0, limit_s=0.01, interval_s=0.2) == [False]
    assert watched(FakeNetwork("once"), [FAR], wait_s=5.0, limit_s=0.01, interval_s=0.2) == [True]


def test_one_line_is_kept_and_dropped_when_nobody_has_waited_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplicate.replica.failure_detector.LINGER_S", A_WHILE_S)

    async def body(stage: Stage) -> None:
        network, loop = FakeNetwork("held"), asyncio.get_running_loop()
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), INTERVAL_S, LIMIT_S)
        run = loop.create_task(peers.run())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peers.gone(FAR), A_WHILE_S)
        while not network.lines[0].is_aborted:
            await asyncio.sleep(INTERVAL_S)
        assert len(network.dialled) == 1
        assert network.lines[0].asked > 2
        run.cancel()

    play(body)


def test_what_was_concluded_from_silence_is_concluded_again_only_where_it_came_to_nothing() -> None:
    async def body(stage: Stage) -> None:
        network, loop = FakeNetwork("once", "mute"), asyncio.get_running_loop()
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), INTERVAL_S, LIMIT_S)
        run = loop.create_task(peers.run())
        loss = await asyncio.wait_for(peers.gone(FAR), 5)
        assert loss.silent
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(peers.gone(FAR), 3 * LIMIT_S)
        loss.retract()
        assert (await asyncio.wait_for(peers.gone(FAR), 5)).silent
        run.cancel()

    play(body)


def looks(watch: SilenceTimer, *times: float) -> None:
    for now in times:
        watch.observe(now)


def test_silence_counts_from_the_last_sign_of_life() -> None:
    watch = SilenceTimer(0.2)
    looks(watch, 5.0, 5.2, 5.4)
    assert watch.silent_s == pytest.approx(0.4)
    watch.reset(5.5)
    assert watch.silent_s == 0
    looks(watch, 5.6, 5.8)
    assert watch.silent_s == pytest.approx(0.3)


def test_a_watch_that_slept_itself_begins_again() -> None:
    """A stopped follower, a machine that was suspended with both: the peer had no chance to be heard."""
    watch = SilenceTimer(0.2)
    looks(watch, 5.0, 5.2, 5.4, 5.6 + BREAK_S + 0.01)
    assert watch.silent_s == 0
    looks(watch, 5.8 + BREAK_S + 0.01)
    assert watch.silent_s == pytest.approx(0.2)


def test_a_look_that_is_late_counts_for_little() -> None:
    """On a machine that does too much at once, the peer may be as late as the watcher."""
    watch = SilenceTimer(0.2)
    looks(watch, 5.0, 6.0, 7.5)
    assert watch.silent_s == pytest.approx(2 * (0.2 + LATE_S))


def test_the_limit_grows_where_conclusions_follow_one_another_and_shrinks_with_time() -> None:
    suspicions = SuspicionTimeout(2.0)
    limits = []
    for number in range(FLAP_FREE + 6):
        limits.append(suspicions.limit_s(float(number)))
        suspicions.conclude(float(number))
    assert limits[:FLAP_FREE] == [2.0] * FLAP_FREE
    assert limits[FLAP_FREE:] == [4.0, 8.0, 16.0, 32.0, 32.0, 32.0]
    assert suspicions.limit_s(FLAP_WINDOW_S + FLAP_FREE + 6.0) == 2.0


# Elections.


def test_the_sign_of_a_process_that_has_ended_is_taken_down_though_its_session_lives() -> None:
    async def body(stage: Stage) -> None:
        first, second = await trees_of(stage, 2)
        leader = election(stage.host, first, "m0")
        await leader.report(9)
        assert await leader.create_leader_node(9)
        # Its candidate's node says more than ours, and no candidate waits for it.
        await asyncio.wait_for(election(stage.host, second, "m1", gone=gone_at_once, delay_s=60.0).elected(lambda: 5), 5)
        assert await leader_of(second, PATH) == Candidate("m1", "m1:1", 5)

    play(body)


def test_the_sign_of_a_process_that_lives_stays() -> None:
    async def body(stage: Stage) -> None:
        first, second = await trees_of(stage, 2)
        assert await election(stage.host, first, "m0").create_leader_node(9)
        for options in ({"gone": never_gone}, {}):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(election(stage.host, second, "m1", **options).elected(lambda: 10), A_WHILE_S)
        assert await leader_of(second, PATH) == Candidate("m0", "m0:1", 9)

    play(body)


class AwayTree(DeafTree):
    """A tree whose store does not answer until a test lets it."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self.answers = asyncio.Event()

    async def sync(self, path: str) -> None:
        await self.answers.wait()
        await self._tree.sync(path)


def test_a_silence_is_not_acted_upon_when_the_metadata_answer_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node was cut off itself, perhaps. Once they answer, a new silence counts."""
    monkeypatch.setattr("triplicate.replica.election.SILENCE_HOLDS_S", 5 * INTERVAL_S)

    async def body(stage: Stage) -> None:
        first, second = await trees_of(stage, 2)
        assert await election(stage.host, first, "m0").create_leader_node(9)
        away, retracted, silent = AwayTree(second), asyncio.Event(), asyncio.Event()
        silent.set()

        async def gone(address: str) -> PeerLoss:
            await silent.wait()
            silent.clear()
            return PeerLoss(silent=True, retract=retracted.set)

        running = asyncio.get_running_loop().create_task(election(stage.host, cast("Tree", away), "m1", gone=gone).elected(lambda: 10))
        await asyncio.wait_for(retracted.wait(), 5)
        away.answers.set()
        await asyncio.sleep(A_WHILE_S)
        assert await leader_of(first, PATH) == Candidate("m0", "m0:1", 9)
        silent.set()
        await asyncio.wait_for(running, 5)
        assert await leader_of(first, PATH) == Candidate("m1", "m1:1", 10)

    play(body)


def test_of_two_that_find_a_leader_silent_at_once_one_leads() -> None:
    async def body(stage: Stage) -> None:
        first, *others = await trees_of(stage, 3)
        assert await election(stage.host, first, "m0").create_leader_node(9)

        async def gone(address: str) -> PeerLoss:
            if address != "m0:1":
                await never_gone(address)
            return PeerLoss(silent=True)

        loop = asyncio.get_running_loop()
        runs = [
            loop.create_task(election(stage.host, tree, f"m{number}", gone=gone).elected(lambda: 10))
            for number, tree in enumerate(others, 1)
        ]
        done, waiting = await asyncio.wait(runs, timeout=A_WHILE_S)
        assert len(done) == len(waiting) == 1
        (lost,) = waiting
        lost.cancel()

    play(body)


def test_the_sign_of_a_successor_stays_where_another_was_to_be_taken_down() -> None:
    async def body(stage: Stage) -> None:
        first, second, third = await trees_of(stage, 3)
        old = election(stage.host, first, "m0")
        assert await old.create_leader_node(9)
        asked: list[str] = []

        async def gone(address: str) -> PeerLoss:
            asked.append(address)
            if len(asked) > 1:
                await never_gone(address)
            await old.resign()
            assert await election(stage.host, third, "m2").create_leader_node(9)
            return PeerLoss()

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(election(stage.host, cast("Tree", DeafTree(second)), "m1", gone=gone).elected(lambda: 10), A_WHILE_S)
        assert asked == ["m0:1", "m2:1"]
        assert await leader_of(second, PATH) == Candidate("m2", "m2:1", 9)

    play(body)


def test_a_node_that_was_started_again_takes_its_former_sign_down() -> None:
    async def body(stage: Stage) -> None:
        former, present = await trees_of(stage, 2)
        assert await election(stage.host, former, "m0").create_leader_node(9)
        twin = election(stage.host, present, "m0", gone=never_gone, holds_name=lambda: False)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(twin.elected(lambda: 9), A_WHILE_S)
        again = election(stage.host, present, "m0", gone=never_gone)
        await asyncio.wait_for(again.elected(lambda: 11), 5)
        assert await leader_of(present, PATH) == Candidate("m0", "m0:1", 11)

    play(body)


def test_a_sign_that_a_later_release_wrote_is_left_alone() -> None:
    async def body(stage: Stage) -> None:
        first, second = await trees_of(stage, 2)
        await first.create(f"{PATH}/leader", b'{"v":9}', ephemeral=True)
        peers = FailureDetector(stage.host, INTERVAL_S)
        run = asyncio.get_running_loop().create_task(peers.run())
        waiting = asyncio.get_running_loop().create_task(election(stage.host, second, "m1", gone=peers.gone).elected(lambda: 10))
        await asyncio.sleep(A_WHILE_S)
        assert not waiting.done()
        await first.delete(f"{PATH}/leader")
        await asyncio.wait_for(waiting, 5)
        run.cancel()

    play(body)


def test_a_peer_that_was_found_silent_is_heard_when_it_speaks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplicate.replica.failure_detector.LINGER_S", A_WHILE_S)

    async def body(stage: Stage) -> None:
        network, loop = FakeNetwork("once", "mute"), asyncio.get_running_loop()
        peers = FailureDetector(replace(stage.host, network=cast("Network", network)), INTERVAL_S, LIMIT_S)
        run = loop.create_task(peers.run())
        loss = await asyncio.wait_for(peers.gone(FAR), 5)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loss.spoken(), A_WHILE_S)
        listening = loop.create_task(loss.spoken())
        await asyncio.sleep(3 * INTERVAL_S)
        while network.lines[-1].is_aborted or not network.lines[-1].asked:
            await asyncio.sleep(INTERVAL_S)
        network.lines[-1].protocol.data_received(b"N")
        await asyncio.wait_for(listening, 5)
        while not network.lines[-1].is_aborted:
            await asyncio.sleep(INTERVAL_S)
        run.cancel()

    play(body)
