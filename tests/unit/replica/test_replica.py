"""The replica's runtime with a machine that only counts: elections, take-overs, faults of the machine and of the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import cast

import pytest

from tests.unit.log.fake import SMALL, Stage, StoredLedger, play
from tests.unit.replica.counter_rig import Counter
from tests.unit.replica.election_rig import SilentTree
from tests.waiting import eventually
from triplicate.errors import Diverged, EnvironmentFault, FormatError, LogFenced, NotEnoughBookies, OutcomeUnknown
from triplicate.ledger import LedgerState
from triplicate.log import LogEntry, Logs
from triplicate.metadata import MemoryTree, RenewingTree, Tree
from triplicate.replica import STANDS_AT, UNREADABLE, Candidate, Election, Replica, ReplicaSettings, Role, candidates_of, leader_of
from triplicate.replica.core import apply_pacing
from triplicate.replica.election import CANDIDATE_CHECK_S, decode_candidate, encode_candidate

PATH = "/machine"
QUICK = ReplicaSettings(report_interval_s=0.02, retry_first_s=0.005, retry_longest_s=0.02)


class Member:
    """One node of the group."""

    def __init__(
        self,
        stage: Stage,
        name: str,
        disk: list[bytes],
        *,
        logs: Logs | None = None,
        reason: str | None = None,
        settings: ReplicaSettings = QUICK,
    ) -> None:
        self.name = name
        self.logs: Logs = logs or stage.logs()
        self.host = stage.client_of(self.logs).host
        self.machine = Counter(disk)
        self.machine.reason = reason
        self.roles: list[Role] = []
        election = Election(self.host, self.tree, PATH, name, f"{name}:1", delay_s=0.02)
        self.replica = Replica(self.host, self.logs, "l", self.machine, election, name, settings, self.roles.append)
        self.task = asyncio.get_running_loop().create_task(self.replica.run())

    @property
    def tree(self) -> Tree:
        return self.logs.client.metadata.tree

    async def stop(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task

    async def until(self, role: Role) -> None:
        await eventually(lambda: self.replica.role is role)


def group(count: int, scene: Callable[[Stage, list[Member]], Coroutine[None, None, None]]) -> None:
    async def body(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", SMALL)
        await logs.client.metadata.tree.create(PATH)
        members = [Member(stage, f"m{index}", []) for index in range(count)]
        try:
            await scene(stage, members)
        finally:
            for member in members:
                await member.stop()

    play(body)


async def leader_among(members: Sequence[Member]) -> Member:
    while True:
        for member in members:
            if member.machine.writer is not None:
                return member
        await asyncio.sleep(0.002)


async def reached(member: Member, position: int) -> None:
    await eventually(lambda: member.replica.position >= position)


def test_one_leads_and_the_others_follow() -> None:
    async def scene(stage: Stage, members: list[Member]) -> None:
        leader = await leader_among(members)
        for index in range(20):
            await leader.machine.write(b"%d" % index)
        for member in members:
            await reached(member, 20)
            assert member.machine.disk == leader.machine.disk
        assert [member.replica.role for member in members].count(Role.LEADER) == 1
        sign = await leader_of(leader.tree, PATH)
        assert sign is not None
        assert members[int(sign.node_id[1:])] is leader
        assert len(await candidates_of(leader.tree, PATH)) == 3

    group(3, scene)


def test_a_successor_has_everything_before_it_leads() -> None:
    async def scene(stage: Stage, members: list[Member]) -> None:
        for round_number in range(3):
            leader = await leader_among(members)
            await leader.machine.write(b"%d" % round_number)
            await leader.stop()
            members.remove(leader)
        assert members[0].machine.led[-1:] in ([3], [])
        await members[0].until(Role.LEADER)
        assert members[0].machine.disk == [b"0", b"1", b"2"]

    group(4, scene)


def test_a_session_that_waits_ends_the_pause_of_a_follower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_pacing, "INTERVAL_MAX_S", 3600.0)
    monkeypatch.setattr(apply_pacing, "INTERVAL_FACTOR", 1e12)
    monkeypatch.setattr(apply_pacing, "AWAITED_FACTOR", 1)

    async def scene(stage: Stage, members: list[Member]) -> None:
        leader = await leader_among(members)
        (copy,) = [member for member in members if member is not leader]
        for index in range(3):
            await leader.machine.write(b"%d" % index)
            copy.replica.hurry()
            await reached(copy, index + 1)

    group(2, scene)


def test_a_node_is_reported_as_leader_once_it_serves() -> None:
    async def scene(stage: Stage, members: list[Member]) -> None:
        async def until_reported(role: str) -> None:
            while [one.role for one in await candidates_of(slow.tree, PATH)] != [role]:
                await asyncio.sleep(0.002)

        slow = Member(stage, "slow", [], settings=replace(QUICK, report_interval_s=3600.0))
        members.append(slow)
        slow.machine.may_serve.clear()
        assert await leader_among(members) is slow
        await until_reported("candidate")
        assert slow.replica.role is Role.CANDIDATE
        slow.machine.may_serve.set()
        # At once, and not with the next report an hour later.
        await until_reported("leader")

    group(0, scene)


def test_a_fenced_leader_follows_again() -> None:
    async def scene(stage: Stage, members: list[Member]) -> None:
        (only,) = members
        await leader_among(members)
        await only.machine.write(b"kept")
        writer = only.machine.writer
        assert writer is not None
        again = asyncio.Event()

        async def not_yet() -> None:
            await again.wait()

        stage.client_of(only.logs).hooks.create = not_yet
        async with await stage.logs().writer("l", owner="thief") as thief:
            with pytest.raises(LogFenced):
                await writer.append_entry([b"lost"])
            await thief.append_entry([b"stolen"])
        again.set()
        await reached(only, 2)
        await leader_among(members)
        assert only.machine.disk == [b"kept", b"stolen"]
        assert Role.FOLLOWER in only.roles[only.roles.index(Role.LEADER) :]

    group(1, scene)


def test_a_take_over_that_fails_is_tried_again_and_others_may_go_first() -> None:
    async def scene(stage: Stage, members: list[Member]) -> None:
        leader = await leader_among(members)
        other = next(member for member in members if member is not leader)
        failures = 3

        async def too_few() -> None:
            nonlocal failures
            if failures:
                failures -= 1
                raise NotEnoughBookies("none")

        stage.client_of(other.logs).hooks.create = too_few
        await leader.stop()
        await other.until(Role.LEADER)
        assert failures == 0

    group(2, scene)


def test_a_fault_of_the_machine_is_tried_again() -> None:
    async def scene(stage: Stage, members: list[Member]) -> None:
        leader = await leader_among(members)
        other = next(member for member in members if member is not leader)
        other.machine.faults = [EnvironmentFault("the disk is full") for _ in range(3)]
        await leader.machine.write(b"x")
        await reached(other, 1)
        assert other.machine.faults == []

    group(2, scene)


def test_a_diverged_copy_ends_and_does_not_stand_for_election() -> None:
    async def scene(stage: Stage, members: list[Member]) -> None:
        leader = await leader_among(members)
        other = next(member for member in members if member is not leader)
        other.machine.faults = [Diverged("rows differ")]
        await leader.machine.write(b"x")
        await asyncio.wait_for(asyncio.shield(other.task), 5)
        assert (other.replica.role, other.replica.reason, other.machine.reason) == (Role.DIVERGED, "rows differ", "rows differ")
        assert other.machine.closed
        assert [one.node_id for one in await candidates_of(leader.tree, PATH)] == [f"m{members.index(leader)}"]
        await leader.stop()
        await asyncio.sleep(0.05)
        assert await leader_of(stage.logs().client.metadata.tree, PATH) is None

    group(2, scene)


def test_a_copy_beyond_the_end_of_its_log_has_diverged() -> None:
    async def body(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", SMALL)
        await logs.client.metadata.tree.create(PATH)
        member = Member(stage, "m0", [b"never logged"])
        await asyncio.wait_for(asyncio.shield(member.task), 5)
        assert member.replica.role is Role.DIVERGED

    play(body)


def test_the_candidate_that_has_applied_more_goes_first() -> None:
    async def body(stage: Stage) -> None:
        trees = [stage.logs().client.metadata.tree for _ in range(2)]
        await trees[0].create(PATH)
        elections = [Election(stage.host, tree, PATH, f"m{index}", "", delay_s=0.2) for index, tree in enumerate(trees)]
        for election, position in zip(elections, (5, 9), strict=True):
            await election.report(position)
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(election.elected(partial(int, at))) for election, at in zip(elections, (5, 9), strict=True)]
        await tasks[1]
        assert not tasks[0].done()
        sign = await leader_of(trees[0], PATH)
        assert sign == Candidate("m1", "", 9)
        await elections[1].withdraw()
        await tasks[0]

    play(body)


def test_a_candidate_with_a_handicap_leaves_the_first_word_to_others() -> None:
    async def body(stage: Stage) -> None:
        trees = [stage.logs().client.metadata.tree for _ in range(2)]
        await trees[0].create(PATH)
        failed, other = (Election(stage.host, tree, PATH, f"m{index}", "", delay_s=0.01) for index, tree in enumerate(trees))
        await failed.report(5)
        await other.report(5)
        waiting = asyncio.get_running_loop().create_task(failed.elected(lambda: 5, handicap_s=60.0))
        await asyncio.sleep(0.3)
        assert await leader_of(trees[0], PATH) is None
        await other.elected(lambda: 5)
        assert not waiting.done()
        waiting.cancel()

    play(body)


def test_a_candidates_node_of_another_version_is_refused() -> None:
    for candidate in (Candidate("n", "h:1", 7), Candidate("n", "h:1", 7, "leader"), Candidate("n", "h:1", 7, "diverged", "why", "h:2")):
        assert decode_candidate(encode_candidate(candidate)) == candidate
    # As every release writes them, for ever.
    assert decode_candidate(b'{"address":"h:1","node":"n","position":7,"v":1}') == Candidate("n", "h:1", 7)
    found = decode_candidate(b'{"address":"h:1","node":"n","position":7,"reason":"why","role":"diverged","v":2}')
    assert found == Candidate("n", "h:1", 7, "diverged", "why")
    found = decode_candidate(b'{"address":"h:1","node":"n","position":7,"resp":"h:2","v":1}')
    assert found == Candidate("n", "h:1", 7, resp_address="h:2")
    for data in (b"", b"{}", b'{"v":2}', b'{"v":1,"node":"n"}', b'{"v":3,"address":"h:1","node":"n","position":7}'):
        with pytest.raises(FormatError):
            decode_candidate(data)


def test_a_candidate_of_a_later_release_hinders_no_election() -> None:
    async def body(stage: Stage) -> None:
        tree = stage.logs().client.metadata.tree
        await tree.create(f"{PATH}/candidates/later", b'{"v":9}', ephemeral=True, parents=True)
        election = Election(stage.host, tree, PATH, "m", "", delay_s=0.01)
        await election.elected(lambda: 0)
        (later,) = await candidates_of(tree, PATH)
        assert (later.node_id, later.role, later.serves) == ("later", UNREADABLE, False)

    play(body)


def test_a_candidate_that_vanished_is_put_up_again_though_nothing_has_moved() -> None:
    async def body(stage: Stage) -> None:
        tree = stage.logs().client.metadata.tree
        election = Election(stage.host, tree, PATH, "m", "h:1", delay_s=0.01)
        await election.report(5, "follower")
        assert await tree.exists(PATH) is None, "a candidate does not bring back a replica that is gone"
        await tree.create(PATH)
        await election.report(5, "follower")
        await tree.delete(f"{PATH}/candidates/m")
        began = stage.host.clock.monotonic()
        while not await candidates_of(tree, PATH):
            await election.report(5, "follower")
            await asyncio.sleep(0.01)
        assert stage.host.clock.monotonic() - began < CANDIDATE_CHECK_S + 5
        assert await candidates_of(tree, PATH) == [Candidate("m", "h:1", 5, "follower")]

    play(body)


def test_a_candidate_is_put_up_again_at_once_in_a_new_session() -> None:
    async def body(stage: Stage) -> None:
        async def open_session() -> Tree:
            return MemoryTree(stage.store)

        tree = RenewingTree(MemoryTree(stage.store), open_session, stage.host)
        await tree.create(PATH)
        election = Election(stage.host, tree, PATH, "m", "h:1", delay_s=0.01)
        await election.report(5, "follower")
        stage.store.expire(tree.session_id)
        await tree.exists(PATH)
        await election.report(5, "follower")
        assert len(await candidates_of(tree, PATH)) == 1
        await tree.close()

    play(body)


def test_a_process_that_does_not_hold_its_name_leaves_the_candidate_of_that_name_alone() -> None:
    async def body(stage: Stage) -> None:
        trees = [stage.logs().client.metadata.tree for _ in range(2)]
        await trees[0].create(PATH)
        holder = Election(stage.host, trees[0], PATH, "m", "first:1", delay_s=0.01)
        twin = Election(stage.host, trees[1], PATH, "m", "second:1", delay_s=0.01, holds_name=lambda: False)
        await holder.report(5, "follower")
        await twin.report(9, "follower")
        await twin.withdraw()
        assert await candidates_of(trees[0], PATH) == [Candidate("m", "first:1", 5, "follower")]

    play(body)


def test_a_leader_whose_session_was_lost_puts_its_sign_up_again_and_leads_on() -> None:
    async def body(stage: Stage) -> None:
        async def open_session() -> Tree:
            return MemoryTree(stage.store)

        logs = stage.logs()
        await logs.create("l", SMALL)
        await logs.client.metadata.tree.create(PATH)
        tree = RenewingTree(MemoryTree(stage.store), open_session, stage.host)
        stage.client_of(logs).metadata.tree = tree
        only = Member(stage, "m0", [], logs=Logs(logs.client, logs.settings))
        await leader_among([only])
        for number in range(3):
            stage.store.expire(tree.session_id)
            while await leader_of(tree, PATH) is None:
                await asyncio.sleep(0.005)
            await only.machine.write(b"%d" % number)
        assert only.machine.led == [0]
        await only.stop()
        await tree.close()

    play(body)


def test_a_deposed_leader_whose_log_does_not_answer_gives_way() -> None:
    async def scene(stage: Stage, members: list[Member]) -> None:
        cut_off = Member(stage, "m0", [], settings=replace(QUICK, confirm_lead_s=0.05))
        members.append(cut_off)
        assert await leader_among(members) is cut_off
        await cut_off.until(Role.LEADER)
        for ledger in stage.bookies.ledgers.values():
            ledger.held = []  # Its bookies are not reached, and their answers neither, that another writer has fenced the ledger.
        led = len(cut_off.roles)
        await cut_off.tree.delete(f"{PATH}/leader")
        # It stands for election again at once.
        await eventually(lambda: Role.FOLLOWER in cut_off.roles[led:])

    group(0, scene)


async def isolated_leader(stage: Stage, members: list[Member], confirm_lead_s: float = 0.05) -> tuple[Member, SilentTree]:
    """A leader whose metadata can be silenced."""
    logs = stage.logs()
    tree = SilentTree(logs.client.metadata.tree)
    stage.client_of(logs).metadata.tree = cast("Tree", tree)
    stage.client_of(logs).add_timeout_s = 0.5
    member = Member(stage, "m0", [], logs=Logs(logs.client, logs.settings), settings=replace(QUICK, confirm_lead_s=confirm_lead_s))
    members.append(member)
    await member.until(Role.LEADER)
    return member, tree


def hold_acknowledgements(stage: Stage) -> StoredLedger:
    """No bookie acknowledges anything from now on. Returns the open ledger."""
    (ledger,) = [ledger for ledger in stage.bookies.ledgers.values() if ledger.metadata.state is LedgerState.OPEN and ledger.entries]
    ledger.held = []
    return ledger


@pytest.mark.parametrize("writes", [True, False], ids=["writing", "idle"])
def test_a_leader_that_neither_metadata_nor_log_answer_gives_way(monkeypatch: pytest.MonkeyPatch, writes: bool) -> None:
    monkeypatch.setattr("triplicate.replica.election.CANDIDATE_CHECK_S", 0.05)

    async def scene(stage: Stage, members: list[Member]) -> None:
        cut_off, tree = await isolated_leader(stage, members)
        hold_acknowledgements(stage)
        tree.answers.clear()
        appended = asyncio.get_running_loop().create_task(cut_off.machine.write(b"x")) if writes else None
        await cut_off.until(Role.FOLLOWER)
        if appended is not None:
            with pytest.raises(OutcomeUnknown):
                await appended
        tree.answers.set()

    group(0, scene)


def test_a_leader_with_a_slow_log_leads_on_while_the_metadata_do_not_answer() -> None:
    async def scene(stage: Stage, members: list[Member]) -> None:
        slow, tree = await isolated_leader(stage, members)
        stage.client_of(slow.logs).add_timeout_s = 60.0
        ledger = hold_acknowledgements(stage)
        tree.answers.clear()
        appended = asyncio.get_running_loop().create_task(slow.machine.write(b"x"))
        await eventually(lambda: len(ledger.held or []) >= 2)  # The entry, and the question whether the log still answers.
        await asyncio.sleep(0.2)
        held, ledger.held = ledger.held or [], None
        for future, entry_id in held:
            future.set_result(entry_id)
        await appended
        tree.answers.set()
        await slow.machine.write(b"y")
        assert slow.roles[-1] is Role.LEADER
        assert slow.machine.led == [0]

    group(0, scene)


def test_a_leader_that_the_log_answers_leads_on_without_the_metadata() -> None:
    async def scene(stage: Stage, members: list[Member]) -> None:
        lonely, tree = await isolated_leader(stage, members, confirm_lead_s=20.0)
        stage.client_of(lonely.logs).add_timeout_s = 0.01
        tree.answers.clear()
        writer = lonely.machine.writer
        assert writer is not None
        ledger = stage.bookies.ledger(writer.ledger_id)
        lonely.replica._in_doubt.set()
        entries = len(ledger.entries)
        await eventually(lambda: len(ledger.entries) >= entries + 3)  # It asks its log again and again.
        assert lonely.roles[-1] is Role.LEADER
        tree.answers.set()

    group(0, scene)


def test_a_machine_that_cannot_get_ready_is_asked_again() -> None:
    async def body(stage: Stage) -> None:
        await stage.logs().create("l", SMALL)
        await stage.logs().client.metadata.tree.create(PATH)
        member = Member(stage, "m0", [])
        member.machine.follow_faults = [EnvironmentFault("the disk is full") for _ in range(3)]
        await leader_among([member])
        await member.stop()

    play(body)


def test_a_leader_whose_own_copy_fails_leaves_the_next_election_to_a_peer() -> None:
    async def scene(stage: Stage, members: list[Member]) -> None:
        leader = await leader_among(members)
        (other,) = [member for member in members if member is not leader]
        while len(await candidates_of(leader.tree, PATH)) < 2:
            await asyncio.sleep(0.005)
        for _ in range(3):
            leader.machine.lead_fault = EnvironmentFault("the disk is full")
            await other.until(Role.LEADER)
            assert leader.replica.role is not Role.LEADER
            while await reason_of(leader) != "the disk is full":
                await asyncio.sleep(0.005)
            other.machine.lead_fault = EnvironmentFault("another fault")
            leader, other = other, leader
        await other.until(Role.LEADER)
        await other.machine.write(b"a record")
        await reached(leader, other.replica.position)
        while await reason_of(leader):
            await asyncio.sleep(0.005)

    async def reason_of(member: Member) -> str:
        return next(one.reason for one in await candidates_of(member.tree, PATH) if one.node_id == member.name)

    group(2, scene)


def test_a_copy_is_not_given_up_because_of_a_metadata_server_that_is_behind() -> None:
    async def body(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", SMALL)
        await logs.client.metadata.tree.create(PATH)
        async with await logs.writer("l", owner="first") as writer:
            await writer.append_entry([b"0"])
        mine, tree = stage.lagging_logs()
        tree.behind["/triplicate/test/logs/l"] = (await tree.get("/triplicate/test/logs/l"))[0]
        leader = Member(stage, "leader", [])
        await leader_among([leader])
        for number in range(3):
            await leader.machine.write(b"%d" % number)
        follower = Member(stage, "follower", list(leader.machine.disk), logs=mine)
        await leader.machine.write(b"more")
        await reached(follower, 5)
        assert follower.replica.role is Role.FOLLOWER
        await follower.stop()
        await leader.stop()

    play(body)


def test_a_copy_given_up_for_its_place_is_verified_and_goes_on() -> None:
    async def body(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", SMALL)
        await logs.client.metadata.tree.create(PATH)
        async with await logs.writer("l", owner="first") as writer:
            await writer.append_entry([b"0", b"1"])
            await writer.append_entry([b"2", b"3"])
        reason = f"{STANDS_AT} 4, where the log cannot be read"
        right = Member(stage, "right", [b"0", b"1", b"2", b"3"], reason=reason)
        await right.until(Role.LEADER)
        assert right.machine.reason is None
        await right.stop()
        wrong = Member(stage, "wrong", [b"0", b"1", b"2", b"x"], reason=reason)
        await asyncio.wait_for(asyncio.shield(wrong.task), 5)
        assert (wrong.replica.role, wrong.replica.reason) == (Role.DIVERGED, "the log holds something else")
        beyond = Member(stage, "beyond", [b"0", b"1", b"2", b"3", b"4"], reason=reason)
        await asyncio.wait_for(asyncio.shield(beyond.task), 5)
        assert beyond.replica.role is Role.DIVERGED
        assert (beyond.replica.reason or "").startswith(STANDS_AT)

    play(body)


def test_under_load_a_follower_applies_many_entries_at_once() -> None:
    async def body(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", SMALL)
        machine = _SlowCounter([])
        election = Election(stage.host, logs.client.metadata.tree, PATH, "m", "m:1", delay_s=1000.0)
        replica = Replica(stage.host, logs, "l", machine, election, "m", QUICK)
        tailing = asyncio.get_running_loop().create_task(replica._tail())
        async with await stage.logs().writer("l", owner="w") as writer:
            for index in range(100):
                await writer.append_entry([b"%d" % index])
                await asyncio.sleep(0.002)
            await eventually(lambda: machine.position == 100)
            assert machine.disk == [b"%d" % index for index in range(100)]
            assert len(machine.applied) < 40
            assert max(machine.applied) <= QUICK.apply_entries
        tailing.cancel()
        with suppress(asyncio.CancelledError):
            await tailing

    play(body)


class _SlowCounter(Counter):
    """An application takes 2 ms."""

    def __init__(self, disk: list[bytes]) -> None:
        super().__init__(disk)
        self.applied: list[int] = []
        """Number of entries of each application with records."""

    async def apply(self, entries: Sequence[LogEntry]) -> int:
        await asyncio.sleep(0.002)
        if any(not entry.is_control for entry in entries):
            self.applied.append(len(entries))
        return await super().apply(entries)
