"""Clients that read at each level on any node beside the faults, and what their reads must have.

One writes marks at the leader, each acknowledged at a known time and position. The reads of a session that was given a position have the
mark of that position, and never fewer marks than the reads before. A bounded read has each mark that was acknowledged before its bound, a
linearizable one each that was acknowledged before it began. All times are of one process.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import asyncpg

MARKS = "create table marks(number integer primary key)"
READERS = 4
ANSWER_LIMIT_S = 1.5
WAIT_LIMIT_S = 8.0
"""Longest wait for a read, which may itself wait for its copy."""
PAUSE_S = 0.1
BOUNDS_S = (0.5, 2.0, 10.0)
CLOCK_ERROR = 0.02
LEVELS = ("session", "session", "bounded", "bounded", "any", "linearizable")
_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""An internal error is met on a connection that ends while a statement is sent."""


@dataclass(frozen=True)
class Mark:
    """A row that the leader has acknowledged."""

    number: int
    position: int
    acknowledged_at: float


@dataclass
class LevelHistory:
    """The marks and the verdicts on the reads. Changed on one thread."""

    marks: list[Mark] = field(default_factory=list)
    reads: Counter[str] = field(default_factory=Counter)
    """Answered reads by level."""
    refused: Counter[str] = field(default_factory=Counter)
    """Refused reads by SQLSTATE."""
    violations: list[str] = field(default_factory=list)

    def judge(self, level: str, began_at: float, bound_s: float, mark: Mark | None, least: int, found: frozenset[int], port: int) -> None:
        """Judge an answered read.

        Args:
            bound_s: of a bounded read. mark: whose position the session was given. least: marks that the session has seen before.
            found: the marks in the answer.
        """
        self.reads[level] += 1
        wanted: set[int] = set()
        if level == "session":
            wanted = set() if mark is None else {mark.number}
            if len(found) < least:
                self.violations.append(f"a session saw {least} marks, and {len(found)} later at port {port}")
        elif level in ("bounded", "linearizable"):
            oldest = began_at - (bound_s * (1 + CLOCK_ERROR) if level == "bounded" else 0.0)
            wanted = {one.number for one in self.marks if one.acknowledged_at < oldest}
        missing = sorted(wanted - found)
        if missing:
            self.violations.append(f"a read at level {level} at port {port} lacks marks {missing[:3]}, {len(missing)} in all")


@dataclass(frozen=True)
class Seen:
    """The state that a session has read last: its position, and the number of its marks."""

    position: int
    marks: int


class LevelClients:
    """The writer of marks and the readers, on a thread. Use it as a context manager.

    Args:
        ports: of the nodes, on 127.0.0.1.
    """

    def __init__(self, ports: Sequence[int], database: str) -> None:
        self.history = LevelHistory()
        self._ports = ports
        self._database = database
        self._stopping = False
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name="levels", daemon=True)

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

    async def _connect(self, port: int) -> asyncpg.Connection:
        async with asyncio.timeout(ANSWER_LIMIT_S):
            return await asyncpg.connect(host="127.0.0.1", port=port, user="levels", database=self._database)

    async def _write(self) -> None:
        number = turn = 0
        while not self._stopping:
            connection: asyncpg.Connection | None = None
            try:
                connection = await self._connect(self._ports[turn % len(self._ports)])
                while not self._stopping:
                    number += 1
                    async with asyncio.timeout(ANSWER_LIMIT_S):
                        await connection.execute(f"insert into marks values({number})")
                        position = await connection.fetchval("select triplicate_position()")
                    self.history.marks.append(Mark(number, position, time.monotonic()))
                    await asyncio.sleep(PAUSE_S)
            except _ERRORS:
                turn += 1
                await asyncio.sleep(PAUSE_S)
            finally:
                if connection is not None:
                    connection.terminate()

    async def _read(self, chance: random.Random) -> None:
        seen = Seen(0, 0)
        while not self._stopping:
            port, connection = chance.choice(self._ports), None
            try:
                connection = await self._connect(port)
                for _ in range(chance.randrange(1, 6)):
                    seen = await self._read_once(connection, port, chance, seen)
                    await asyncio.sleep(PAUSE_S)
            except asyncpg.PostgresError as error:
                self.history.refused[str(error.sqlstate)] += 1
                await asyncio.sleep(PAUSE_S)
            except _ERRORS:
                await asyncio.sleep(PAUSE_S)
            finally:
                if connection is not None:
                    connection.terminate()

    async def _read_once(self, connection: asyncpg.Connection, port: int, chance: random.Random, seen: Seen) -> Seen:
        """One read. Returns the state that later reads at level session must have at least."""
        level, bound_s = chance.choice(LEVELS), chance.choice(BOUNDS_S)
        mark = self.history.marks[-1] if self.history.marks else None
        async with asyncio.timeout(WAIT_LIMIT_S):
            position = max(seen.position, 0 if mark is None else mark.position)
            parameters = {"read_level": level, "max_staleness": f"{bound_s}s", "read_position": position}
            await connection.execute("; ".join(f"set triplicate.{name} = '{value}'" for name, value in parameters.items()))
            began_at = time.monotonic()
            rows = await connection.fetch("select triplicate_position(), 0 union all select triplicate_position(), number from marks")
        found = frozenset(row[1] for row in rows[1:])
        self.history.judge(level, began_at, bound_s, mark, seen.marks, found, port)
        return Seen(rows[0][0], len(found)) if level == "session" else seen
