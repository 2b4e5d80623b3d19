"""Clients that read a database or a store at each level on any node beside the faults, and what their reads must have.

One writes marks at the leader, each acknowledged at a known time and position. The reads of a session that was given a position have the
mark of that position, and never fewer marks than the reads before. A bounded read has each mark that was acknowledged before its bound, a
linearizable one each that was acknowledged before it began. An answer with an age, at any level, has each mark that was acknowledged longer
before the read. All times are of one process.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.histories.cluster import Address
from benchmarks.histories.stages import Kind, Result, Stages

READERS = 4
ANSWER_LIMIT_S = 1.5
WAIT_LIMIT_S = 8.0
"""Longest wait for a read, which may itself wait for its copy."""
PAUSE_S = 0.1
BOUNDS_S = (0.5, 2.0, 10.0)
CLOCK_ERROR = 0.02
LEVELS = ("session", "session", "bounded", "bounded", "any", "linearizable")


class Lost(Exception):
    """The connection has ended, or the answer is not what it must be."""


class Refused(Exception):
    """The server has refused a request. The message is the error's code."""


@dataclass(frozen=True)
class Answer:
    """The answer to a read.

    Args:
        position: of the state that was read; 0 where the level has none.
        is_torn: whether a mark was seen in part.
        age_s: by the node; None if it was not asked for, or is not known there.
    """

    position: int
    marks: frozenset[int]
    is_torn: bool = False
    age_s: float | None = None


class Door(Protocol):
    """A connection to one node. Its methods raise Lost, Refused and OSError."""

    async def write(self, mark: int) -> int:
        """Write a mark. Returns the position of the session afterwards."""

    async def read(self, level: str, bound_s: float, position: int, *, asks_age: bool) -> Answer:
        """Read all marks. Args: bound_s: of level bounded. position: of level session. asks_age: whether to ask for the age, too."""

    async def close(self) -> None: ...


Connect = Callable[[Address], Awaitable[Door]]


@dataclass(frozen=True)
class Mark:
    """A row that the leader has acknowledged."""

    number: int
    position: int
    acknowledged_at: float


@dataclass
class LevelHistory:
    """The marks and the verdicts on the reads. Changed on one thread.

    Args:
        kind: of the reads.
    """

    kind: Kind = Kind.SQL_LEVELS
    stages: Stages = field(default_factory=Stages)
    marks: list[Mark] = field(default_factory=list)
    reads: Counter[str] = field(default_factory=Counter)
    """Answered reads by level."""
    ages: int = 0
    """Answers with an age."""
    refused: Counter[str] = field(default_factory=Counter)
    """Refused reads by the error's code."""
    violations: list[str] = field(default_factory=list)
    wrong: set[int] = field(default_factory=set)
    """The stages of the violations."""

    def refuse(self, code: str) -> None:
        """Count a refused read."""
        self.refused[code] += 1
        self.stages.count(self.kind, Result.REFUSED)

    def judge(self, level: str, began_at: float, bound_s: float, mark: Mark | None, least: int, answer: Answer, where: object) -> None:
        """Judge an answered read.

        Args:
            bound_s: of a bounded read. mark: whose position the session was given. least: marks that the session has seen before.
            where: the node.
        """
        found = answer.marks
        self.reads[level] += 1
        self.stages.count(self.kind, Result.ANSWERED)
        if answer.is_torn:
            self._blame(f"a read at level {level} at {where} shows a part of a batch")
        wanted: set[int] = set()
        if level == "session":
            wanted = set() if mark is None else {mark.number}
            if len(found) < least:
                self._blame(f"a session saw {least} marks, and {len(found)} later at {where}")
        elif level in ("bounded", "linearizable"):
            oldest = began_at - (bound_s * (1 + CLOCK_ERROR) if level == "bounded" else 0.0)
            wanted = {one.number for one in self.marks if one.acknowledged_at < oldest}
        missing = sorted(wanted - found)
        if missing:
            self._blame(f"a read at level {level} at {where} lacks marks {missing[:3]}, {len(missing)} in all")
        if answer.age_s is not None:
            self.ages += 1
            oldest = began_at - answer.age_s * (1 + CLOCK_ERROR)
            lacking = sorted({one.number for one in self.marks if one.acknowledged_at < oldest} - found)
            if lacking:
                old = f"{answer.age_s:.3f} s old"
                self._blame(f"an answer at level {level} at {where}, {old}, lacks marks {lacking[:3]}, {len(lacking)} in all")

    def _blame(self, violation: str) -> None:
        self.violations.append(violation)
        self.wrong.add(self.stages.now)


@dataclass(frozen=True)
class Seen:
    """The state that a session has read last: its position, and the number of its marks."""

    position: int
    marks: int


class LevelClients:
    """The writer of marks and the readers, on a thread. Use it as a context manager.

    Args:
        addresses: returns the addresses of the nodes now.
        connect: connects to a node. Raises Lost, Refused and OSError.
    """

    def __init__(self, addresses: Callable[[], Sequence[Address]], connect: Connect, kind: Kind, stages: Stages) -> None:
        self.history = LevelHistory(kind, stages)
        self._addresses = addresses
        self._connect_to = connect
        self._stopping = False
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name=str(kind), daemon=True)

    def __enter__(self) -> LevelClients:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        self._thread.join(60.0)

    def _serve(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:  # noqa: BLE001  a defect of this program must not look like idle clients
            self.failure = error

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write())
            for number in range(READERS):
                group.create_task(self._read(random.Random(f"levels {number}")))

    async def _connect(self, address: Address) -> Door:
        async with asyncio.timeout(ANSWER_LIMIT_S):
            return await self._connect_to(address)

    async def _write(self) -> None:
        number = turn = 0
        while not self._stopping:
            door: Door | None = None
            addresses = self._addresses()
            try:
                door = await self._connect(addresses[turn % len(addresses)])
                while not self._stopping:
                    number += 1
                    async with asyncio.timeout(ANSWER_LIMIT_S):
                        position = await door.write(number)
                    self.history.marks.append(Mark(number, position, time.monotonic()))
                    await asyncio.sleep(PAUSE_S)
            except (Lost, Refused, OSError):
                turn += 1
                await asyncio.sleep(PAUSE_S)
            finally:
                if door is not None:
                    await door.close()

    async def _read(self, chance: random.Random) -> None:
        seen = Seen(0, 0)
        while not self._stopping:
            address, door = chance.choice(self._addresses()), None
            try:
                door = await self._connect(address)
                for _ in range(chance.randrange(1, 6)):
                    seen = await self._read_once(door, address, chance, seen)
                    await asyncio.sleep(PAUSE_S)
            except Refused as error:
                self.history.refuse(str(error))
                await asyncio.sleep(PAUSE_S)
            except (Lost, OSError):
                await asyncio.sleep(PAUSE_S)
            finally:
                if door is not None:
                    await door.close()

    async def _read_once(self, door: Door, address: Address, chance: random.Random, seen: Seen) -> Seen:
        """One read. Returns the state that later reads at level session must have at least."""
        level, bound_s = chance.choice(LEVELS), chance.choice(BOUNDS_S)
        mark = self.history.marks[-1] if self.history.marks else None
        position = max(seen.position, 0 if mark is None else mark.position)
        began_at = time.monotonic()
        async with asyncio.timeout(WAIT_LIMIT_S):
            # An age that was asked for makes a node ask the log: half of the reads go without.
            answer = await door.read(level, bound_s, position, asks_age=chance.random() < 0.5)
        self.history.judge(level, began_at, bound_s, mark, seen.marks, answer, address)
        return Seen(answer.position, len(answer.marks)) if level == "session" else seen
