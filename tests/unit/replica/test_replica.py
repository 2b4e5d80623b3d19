"""The replica's runtime with a machine that only counts: elections, take-overs, faults of the machine and of the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial

import pytest

from tests.unit.log.fake import SMALL, Stage, play
from triplicate.errors import Diverged, EnvironmentFault, FormatError, LogFenced, NotEnoughBookies, TriplicateError
from triplicate.log import LogEntry, Logs, LogWriter
from triplicate.metadata import Tree
from triplicate.replica import Candidate, Election, Replica, ReplicaSettings, Role, candidates_of, leader_of
from triplicate.replica.election import decode_candidate, encode_candidate

PATH = "/machine"
QUICK = ReplicaSettings(report_interval_s=0.02, retry_first_s=0.005, retry_longest_s=0.02)


class Counter:
    """Keeps the values it was given; `disk` is what survives a restart."""

    def __init__(self, disk: list[bytes]) -> None:
        self.disk = disk
        self.writer: LogWriter | None = None
        self.led: list[int] = []
        self.reason: str | None = None
        self.faults: list[TriplicateError] = []
        self.closed = False

    @property
    def position(self) -> int:
        return len(self.disk)

    async def open(self) -> int:
        if self.reason is not None:
            raise Diverged(self.reason)
        return self.position

    async def follow(self) -> int:
        return self.position

    async def apply(self, entries: Sequence[LogEntry]) -> int:
        await asyncio.sleep(0)
        if self.faults:
            raise self.faults.pop()
        for entry in entries:
            assert entry.first_offset == self.position
            self.disk += [value or b"" for value in entry.values]
        return self.position

    async def lead(self, writer: LogWriter) -> None:
        assert self.position == writer.start_offset
        self.led.append(writer.start_offset)
        self.writer = writer
        try:
            while writer.failure is None:
                await asyncio.sleep(0.002)
            raise writer.failure
        finally:
            self.writer = None

    async def write(self, value: bytes) -> None:
        assert self.writer is not None
        await self.writer.append_entry([value])
        self.disk.append(value)

    async def diverge(self, reason: str) -> None:
        self.reason = reason

    async def close(self) -> None:
        self.closed = True


class Member:
    """One node of the group."""

    def __init__(self, stage: Stage, name: str, disk: list[bytes]) -> None:
        self.logs: Logs = stage.logs()
        self.host = stage.client_of(self.logs).host
        self.machine = Counter(disk)
        self.roles: list[Role] = []
        election = Election(self.host, self.tree, PATH, name, f"{name}:1", delay_s=0.02)
        self.replica = Replica(self.host, self.logs, "l", self.machine, election, name, QUICK, self.roles.append)
        self.task = asyncio.get_running_loop().create_task(self.replica.run())

    @property
    def tree(self) -> Tree:
        return self.logs.client.metadata.tree

    async def stop(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task

    async def until(self, role: Role) -> None:
        while self.replica.role is not role:
            await asyncio.sleep(0.002)


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
    while member.replica.position < position:
        await asyncio.sleep(0.002)


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


def test_a_candidates_node_of_another_version_is_refused() -> None:
    assert decode_candidate(encode_candidate(Candidate("n", "h:1", 7))) == Candidate("n", "h:1", 7)
    for data in (b"", b"{}", b'{"v":2}', b'{"v":1,"node":"n"}'):
        with pytest.raises(FormatError):
            decode_candidate(data)
