"""The taking down of a lost leader's sign: at most once, and not where the leader is heard of before it is down."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from tests.unit.log.fake import Stage, play
from tests.unit.replica.election_rig import A_WHILE_S, PATH, DeafTree, election, gone_at_once, never_gone, trees_of
from tests.waiting import eventually
from triplicate.metadata import Tree
from triplicate.replica import Candidate, PeerLoss, leader_of
from triplicate.replica.election import encode_handover


class SlowTree(DeafTree):
    """A tree whose changes reach the store late."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self.is_changing = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def delete(self, path: str, version: int = -1) -> None:
        self.is_changing.set()
        await self.goes_on.wait()
        await self._tree.delete(path, version)

    async def multi(self, operations: Any) -> None:
        self.is_changing.set()
        await self.goes_on.wait()
        await self._tree.multi(operations)


@pytest.mark.parametrize("silent", [True, False], ids=["silent", "ended"])
def test_the_sign_of_a_successor_stays_where_another_takes_the_old_one_down_late(silent: bool) -> None:
    """Both have seen the old sign, and each sign is at version 0."""

    async def body(stage: Stage) -> None:
        first, second, third = await trees_of(stage, 3)
        old = election(stage.host, first, "m0")
        await old.report(9)
        assert await old.create_leader_node(9)

        async def gone(address: str) -> PeerLoss:
            if address != "m0:1":
                await never_gone(address)
            return PeerLoss(silent=silent)

        slow = SlowTree(third)
        late = asyncio.get_running_loop().create_task(election(stage.host, cast("Tree", slow), "m2", gone=gone).elected(lambda: 10))
        await asyncio.wait_for(slow.is_changing.wait(), 5)
        await asyncio.wait_for(election(stage.host, second, "m1", gone=gone).elected(lambda: 10), 5)
        slow.goes_on.set()
        await asyncio.sleep(A_WHILE_S)
        assert await leader_of(second, PATH) == Candidate("m1", "m1:1", 10)
        assert not late.done()
        late.cancel()

    play(body)


def test_a_leader_that_has_reported_since_it_was_found_silent_stays() -> None:
    async def body(stage: Stage) -> None:
        first, second = await trees_of(stage, 2)
        old = election(stage.host, first, "m0")
        await old.report(9)
        assert await old.create_leader_node(9)
        retracted = asyncio.Event()

        async def gone(address: str) -> PeerLoss:
            if retracted.is_set():
                await never_gone(address)
            return PeerLoss(silent=True, retract=retracted.set)

        slow = SlowTree(second)
        waiting = asyncio.get_running_loop().create_task(election(stage.host, cast("Tree", slow), "m1", gone=gone).elected(lambda: 10))
        await asyncio.wait_for(slow.is_changing.wait(), 5)
        await old.report(12)
        slow.goes_on.set()
        await asyncio.wait_for(retracted.wait(), 5)
        assert await leader_of(second, PATH) == Candidate("m0", "m0:1", 9)
        waiting.cancel()

    play(body)


def test_the_sign_of_a_process_that_has_ended_goes_though_its_last_report_comes_late() -> None:
    async def body(stage: Stage) -> None:
        first, second = await trees_of(stage, 2)
        old = election(stage.host, first, "m0")
        await old.report(9)
        assert await old.create_leader_node(9)
        slow = SlowTree(second)
        waiting = asyncio.get_running_loop().create_task(
            election(stage.host, cast("Tree", slow), "m1", gone=gone_at_once).elected(lambda: 20)
        )
        await asyncio.wait_for(slow.is_changing.wait(), 5)
        await old.report(12)
        slow.goes_on.set()
        await asyncio.wait_for(waiting, 5)
        assert await leader_of(second, PATH) == Candidate("m1", "m1:1", 20)

    play(body)


def test_a_leader_that_speaks_again_while_its_sign_is_being_taken_down_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplicate.replica.election.SILENCE_HOLDS_S", 60.0)

    async def body(stage: Stage) -> None:
        first, second = await trees_of(stage, 2)
        old = election(stage.host, first, "m0")
        await old.report(9)
        assert await old.create_leader_node(9)
        retracted, speaks = asyncio.Event(), asyncio.Event()

        async def spoken() -> None:
            await speaks.wait()

        async def gone(address: str) -> PeerLoss:
            if retracted.is_set():
                await never_gone(address)
            return PeerLoss(silent=True, retract=retracted.set, spoken=spoken)

        slow = SlowTree(second)
        waiting = asyncio.get_running_loop().create_task(election(stage.host, cast("Tree", slow), "m1", gone=gone).elected(lambda: 10))
        await asyncio.wait_for(slow.is_changing.wait(), 5)
        speaks.set()
        await asyncio.wait_for(retracted.wait(), 5)
        slow.goes_on.set()
        await asyncio.sleep(A_WHILE_S)
        assert await leader_of(second, PATH) == Candidate("m0", "m0:1", 9)
        waiting.cancel()

    play(body)


def test_the_loss_of_a_leader_counts_although_its_node_changes_at_once() -> None:
    """The connection to the metadata breaks with the leader's machine, and every watch wakes."""

    async def body(stage: Stage) -> None:
        first, second = await trees_of(stage, 2)
        assert await election(stage.host, first, "m0").create_leader_node(9)
        wakes = asyncio.Event()

        class WakingTree(DeafTree):
            def watch(self, path: str) -> Any:
                return _Waking(wakes)

        waits: list[str] = []

        async def gone(address: str) -> PeerLoss:
            waits.append(address)
            if len(waits) > 1:
                await never_gone(address)
            wakes.set()
            await asyncio.sleep(0)  # The watch is first, in the same iteration of the loop.
            return PeerLoss()

        waking = election(stage.host, cast("Tree", WakingTree(second)), "m1", gone=gone)
        await asyncio.wait_for(waking.elected(lambda: 10), 5)
        assert await leader_of(first, PATH) == Candidate("m1", "m1:1", 10)

    play(body)


class _Waking:
    """A watch that wakes with an event, before anything else that waits for it."""

    def __init__(self, wakes: asyncio.Event) -> None:
        self._wakes = wakes

    async def changed(self) -> None:
        await self._wakes.wait()

    def close(self) -> None:
        return


class TreeBesideLeader(DeafTree):
    """A tree on the machine of the metadata service's leader."""

    async def is_beside_leader(self) -> bool:
        return True


@pytest.mark.parametrize("has_others", [True, False], ids=["with another candidate", "alone"])
def test_a_candidate_beside_the_leader_of_the_metadata_service_lets_another_be_first(
    has_others: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triplicate.replica.election.BESIDE_LEADER_DELAY_S", 60.0)

    async def body(stage: Stage) -> None:
        first, second = await trees_of(stage, 2)
        beside = election(stage.host, cast("Tree", TreeBesideLeader(first)), "m0")
        await beside.report(9)
        if has_others:
            other = election(stage.host, second, "m1")
            await other.report(9)
            waiting = asyncio.get_running_loop().create_task(beside.elected(lambda: 9))
            await asyncio.sleep(A_WHILE_S)
            await asyncio.wait_for(other.elected(lambda: 9), 5)
            waiting.cancel()
        else:
            await asyncio.wait_for(beside.elected(lambda: 9), 5)
        assert await leader_of(first, PATH) == Candidate("m1" if has_others else "m0", "m1:1" if has_others else "m0:1", 9)

    play(body)


def test_a_candidate_that_was_requested_to_lead_does_so_also_beside_that_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplicate.replica.election.BESIDE_LEADER_DELAY_S", 60.0)

    async def body(stage: Stage) -> None:
        first, second = await trees_of(stage, 2)
        beside = election(stage.host, cast("Tree", TreeBesideLeader(first)), "m0")
        await beside.report(9)
        await election(stage.host, second, "m1").report(9)
        await second.create(f"{PATH}/handover", encode_handover("m0"), ephemeral=True)
        await asyncio.wait_for(beside.elected(lambda: 9), 5)

    play(body)


def test_a_candidate_that_could_not_lead_deposes_no_silent_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplicate.replica.election.SILENCE_HOLDS_S", 0.2)

    async def body(stage: Stage) -> None:
        first, second = await trees_of(stage, 2)
        assert await election(stage.host, first, "m0").create_leader_node(9)
        reached, asked, retracted = [False], 0, 0

        async def gone(address: str) -> PeerLoss:
            return PeerLoss(silent=True, retract=retract)

        def retract() -> None:
            nonlocal retracted
            retracted += 1

        async def could_lead() -> bool:
            nonlocal asked
            asked += 1
            return reached[0]

        candidate = election(stage.host, second, "m1", gone=gone, could_lead=could_lead)
        running = asyncio.get_running_loop().create_task(candidate.elected(lambda: 10))
        await eventually(lambda: retracted >= 2)
        assert asked - retracted <= 1, "once in each silence"
        assert await leader_of(first, PATH) == Candidate("m0", "m0:1", 9)
        reached[0] = True
        await asyncio.wait_for(running, 10)
        assert await leader_of(first, PATH) == Candidate("m1", "m1:1", 10)

    play(body)


def test_a_candidate_asks_no_bookie_before_it_deposes_a_leader_that_has_ended() -> None:
    async def body(stage: Stage) -> None:
        first, second = await trees_of(stage, 2)
        assert await election(stage.host, first, "m0").create_leader_node(9)

        async def could_lead() -> bool:
            raise AssertionError("the leader is gone for certain")

        await asyncio.wait_for(election(stage.host, second, "m1", gone=gone_at_once, could_lead=could_lead).elected(lambda: 10), 10)
        assert await leader_of(first, PATH) == Candidate("m1", "m1:1", 10)

    play(body)
