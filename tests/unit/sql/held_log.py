"""A database that leads over a log whose acknowledgements a test holds back, with a clock for spans that a test may set."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw

from tests.unit.sql.cluster import SETTINGS, run
from tests.waiting import PLAY_LIMIT_S, eventually
from triplicate.runtime import Clock, Timer, real_host
from triplicate.sql import SqlDatabase
from triplicate.sql.storage.applier import LogBatch


class HeldLog:
    """A log that acknowledges when a test lets it, and counts the appends."""

    def __init__(self, epoch: int = 1) -> None:
        self.epoch = epoch
        self.next_offset = 0
        self.held = False
        self.entries = 0
        self.noops = 0
        self.made_readable = 0
        self.sent_batches: list[LogBatch] = []
        self.acknowledged: set[int] = set()
        """Indexes of the batches that were acknowledged."""
        self._waiting: list[asyncio.Future[None]] = []

    async def append_entry(self, values: Sequence[bytes], *, preamble: bytes | None = None) -> range:
        start, self.next_offset = self.next_offset, self.next_offset + len(values)
        self.entries += 1
        index = len(self.sent_batches)
        self.sent_batches.append(LogBatch(start, values, preamble, self.epoch))
        await self._acknowledged()
        self.acknowledged.add(index)
        return range(start, start + len(values))

    async def append_listed(self, entries: AsyncIterable[tuple[bytes, Sequence[bytes]]]) -> range:
        start = self.next_offset
        async for preamble, records in entries:
            self.sent_batches.append(LogBatch(self.next_offset, records, preamble, self.epoch))
            self.next_offset += len(records)
        await self._acknowledged()
        return range(start, self.next_offset)

    async def noop(self) -> None:
        self.noops += 1
        await self._acknowledged()

    def make_readable(self) -> None:
        self.made_readable += 1

    async def _acknowledged(self) -> None:
        if self.held:
            self._waiting.append(asyncio.get_running_loop().create_future())
            await self._waiting[-1]

    def release(self, error: Exception | None = None) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

    def release_first(self) -> None:
        self.release_at(0)

    def release_at(self, index: int, error: Exception | None = None) -> None:
        """Acknowledge, or fail, one of the appends that wait."""
        future = self._waiting.pop(index)
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    @property
    def waiting(self) -> int:
        """The number of appends that wait for their acknowledgement."""
        return len(self._waiting)

    async def sent(self, count: int) -> None:
        """Return when `count` appends wait for their acknowledgement."""
        await eventually(lambda: len(self._waiting) >= count)


class SetClock:
    """The real clock, but for `elapsed`, which stands still until a test moves it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.now = 1000.0

    def elapsed(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def wall_us(self) -> int:
        return self._clock.wall_us()

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> Timer:
        return self._clock.call_at(when, callback, *args)


def database_at(folder: Path, lease_s: float = 0.0) -> tuple[SqlDatabase, SetClock]:
    """A database whose clock for spans a test moves."""
    host = real_host("test", seed=1)
    clock = SetClock(host.clock)
    path = str(folder / "main.db")
    return SqlDatabase(replace(host, clock=clock), "db", b"i" * 16, path, SETTINGS, lease_s=lease_s), clock


def play(folder: Path, scene: Callable[[SqlDatabase, HeldLog], Coroutine[Any, Any, None]]) -> None:
    async def without_clock(database: SqlDatabase, log: HeldLog, _clock: SetClock) -> None:
        await scene(database, log)

    play_leased(folder, 0.0, without_clock)


def play_leased(folder: Path, lease_s: float, scene: Callable[[SqlDatabase, HeldLog, SetClock], Coroutine[Any, Any, None]]) -> None:
    """Run a scene with a leader of epoch 1 whose table ``t`` has one row, with a limit."""

    async def body() -> None:
        async with asyncio.timeout(PLAY_LIMIT_S):
            log = HeldLog()
            database, clock = database_at(folder, lease_s)
            await database.open()
            await database.follow()
            leading = asyncio.get_running_loop().create_task(database._lead(log, lambda: None), name="leading")
            await eventually(lambda: database.is_leader)
            session = await database.session()
            await run(session, "create table t(a)")
            await run(session, "insert into t values(1)")
            await session.close()
            try:
                await scene(database, log, clock)
            finally:
                leading.cancel()
                await asyncio.wait([leading])
                await database.close()

    asyncio.run(body())


def visible(database: SqlDatabase) -> list[Any]:
    """The rows that any other connection to the file sees now."""
    connection = apsw.Connection(database.path)
    rows = connection.execute("select a from t order by a").fetchall()
    connection.close()
    return [row[0] for row in rows]
