"""Readers of the log workload, and the actor that truncates logs: tailers, readers of ranges, and a truncator that also sweeps."""

from __future__ import annotations

import asyncio

from triplicate.client import Client
from triplicate.errors import ArgumentError, NoSuchLedger, OffsetGap, OffsetTruncated
from triplicate.log import LogReader, Logs, OffsetRange
from triplicate.runtime import TaskScope
from triplicate_simulator.checkers.log_rules import FinalLogRead, ReadingEnded, TruncationRequested
from triplicate_simulator.workloads.log.log_model import LOGS, UNKNOWN_OUTCOMES, WRITTEN, LogModel, wait_for

PATIENCE_S = 2.0
"""A tailer that receives nothing for this time checks whether the log is finished."""

STAGED_SHARE = 0.4
"""Share of sweeps that run right after ledgers were staged: these are on no list yet, and must stay all the same."""


class LogTailer:
    """Follows a log to its end, from an offset that it keeps over crashes, or from the beginning again.

    Args:
        restarts: largest number of restarts of its own will.
    """

    def __init__(self, scene: LogModel, name: str, log: str, *, restarts: int) -> None:
        self._scene = scene
        self._name = name
        self._log = log
        self._position = 0
        self._restarts = restarts
        self._chance = scene.chance(name)

    async def __call__(self, client: Client) -> None:
        logs = self._scene.logs(client)
        while not self._is_done():
            try:
                await self._follow(logs)
            except OffsetTruncated:
                self._scene.count("readers_truncated")
                await self._find_first(logs)
            except UNKNOWN_OUTCOMES as error:
                self._scene.trouble(error)
                await asyncio.sleep(0.2)

    def _is_done(self) -> bool:
        end = self._scene.ends.get(self._log)
        return end is not None and self._position >= end

    async def _find_first(self, logs: Logs) -> None:
        try:
            self._position = max(self._position, (await logs.head(self._log)).first_offset)
        except UNKNOWN_OUTCOMES as error:
            self._scene.trouble(error)

    async def _follow(self, logs: Logs) -> None:
        scene = self._scene
        if self._restarts and self._chance.random() < 0.3 and not scene.is_quiet:
            self._restarts -= 1
            self._position = (await logs.head(self._log)).first_offset
        async with await logs.reader(self._log, self._position, include_control=scene.load.control) as reader:
            reading = scene.begin_reading(self._log, self._name, self._position)
            stop_s = scene.time() + self._chance.uniform(5.0, 60.0)
            while not self._is_done() and (scene.time() < stop_s or scene.is_quiet):
                try:
                    await self._next(reader, reading)
                except OffsetTruncated:
                    raise
                except (OffsetGap, NoSuchLedger) as error:
                    scene.refused(self._log, reading, error)
                    raise
                except UNKNOWN_OUTCOMES as error:
                    # The reader keeps its position and may be used again.
                    scene.trouble(error)
                    await asyncio.sleep(0.1)
                    if self._chance.random() < 0.5:
                        return

    async def _next(self, reader: LogReader, reading: str) -> None:
        entry = await reader.next_entry(PATIENCE_S)
        while entry is not None:
            self._scene.note_read(self._log, reading, entry)
            self._position = entry.end_offset
            assert reader.position == self._position, f"{self._name} was given {entry} and stands at {reader.position}"
            entry = await reader.next_entry(0)


class LogRangeReader:
    """Plans ranges of a log and reads them concurrently, as parallel tasks of one query do. Reads the end of logs in between."""

    def __init__(self, scene: LogModel, name: str) -> None:
        self._scene = scene
        self._name = name
        self._chance = scene.chance(name)

    async def __call__(self, client: Client) -> None:
        logs = self._scene.logs(client)
        while True:
            await asyncio.sleep(self._chance.expovariate(0.7))
            log = self._chance.choice(LOGS)
            try:
                end = await self._scene.ask_end(logs, log, self._name)
                if self._chance.random() < 0.25:
                    await self._read(logs, log, end)
            except OffsetTruncated:
                self._scene.count("readers_truncated")
            except UNKNOWN_OUTCOMES as error:
                self._scene.trouble(error)

    async def _read(self, logs: Logs, log: str, end: int) -> None:
        first = (await logs.head(log)).first_offset
        start = max(first, end - self._chance.choice([10, 30, 100]))
        if start >= end:
            return
        size = self._chance.randrange(5, 40)
        planned = await logs.plan(log, start, end, size)
        again = await logs.plan(log, start, end, size)
        # Segments that were rewritten or merged meanwhile have other ledgers, and ranges end where ledgers do.
        if [item.ledger_id for item in planned] == [item.ledger_id for item in again]:
            assert [(item.first_offset, item.end_offset) for item in planned] == [(item.first_offset, item.end_offset) for item in again], (
                f"the same records of {log} were planned differently the second time"
            )
        async with TaskScope(f"ranges of {self._name}") as scope:
            for item in planned:
                scope.spawn(self._read_range(logs, log, item), name="range")

    async def _read_range(self, logs: Logs, log: str, planned: OffsetRange) -> None:
        scene = self._scene
        reading = scene.begin_reading(log, f"{self._name} of ledger {planned.ledger_id}", planned.first_offset)
        try:
            async with logs.read_range(planned) as reader:
                async for entry in reader:
                    scene.note_read(log, reading, entry)
        except (OffsetGap, NoSuchLedger) as error:
            # An open ledger's bookies may have been away for so long that the reader gave up; a closed one's records must be there.
            head = await logs.head(log)
            if planned.first_offset >= head.first_offset and (isinstance(error, NoSuchLedger) or planned.last_entry is not None):
                scene.refused(log, reading, error)
        except UNKNOWN_OUTCOMES as error:
            scene.trouble(error)
        else:
            scene.add(ReadingEnded(scene.time(), log, reading, planned.end_offset))
            scene.count("ranges_read")


class LogTruncator:
    """Truncates the log that writers compete for, and sweeps all logs."""

    def __init__(self, scene: LogModel, name: str) -> None:
        self._scene = scene
        self._name = name
        self._chance = scene.chance(name)
        self._truncations = scene.load.truncations

    async def __call__(self, client: Client) -> None:
        scene = self._scene
        logs = scene.logs(client)
        while True:
            pause_s = self._chance.uniform(3.0, 9.0)
            log = await self._wait_for_staged(pause_s) if self._chance.random() < STAGED_SHARE else await asyncio.sleep(pause_s, "")
            try:
                if scene.load.retain_size_bytes:
                    await scene.list_segments(logs, WRITTEN, self._name)
                if not log and self._truncations and self._chance.random() < 0.7:
                    self._truncations -= 1
                    await self._truncate(logs)
                else:
                    swept = await logs.sweep(log or self._chance.choice(LOGS))
                    scene.count("pages_swept", swept["pages"])
                    scene.count("ledgers_swept", swept["ledgers"])
                    scene.count("publishers_forgotten", swept["publishers"])
            except ArgumentError as error:
                # The bookies that answer now may know an earlier end of an open segment than those that answered before.
                scene.trouble(error)
            except UNKNOWN_OUTCOMES as error:
                scene.trouble(error)

    async def _wait_for_staged(self, seconds: float) -> str:
        """Wait for staged ledgers that are about to be published. Returns their log, or nothing after the time."""
        scene = self._scene
        scene.has_staged.clear()
        return scene.staged[-1] if await wait_for(scene.has_staged, seconds) else ""

    async def _truncate(self, logs: Logs) -> None:
        scene = self._scene
        end = await scene.ask_end(logs, WRITTEN, self._name)
        first = (await logs.head(WRITTEN)).first_offset
        # Anywhere, and sometimes right at the end.
        offset = max(first, self._chance.choice([end, self._chance.randrange(first, end + 1), self._chance.randrange(first, end + 1)]))
        scene.add(TruncationRequested(scene.time(), WRITTEN, offset))
        first = await logs.truncate(WRITTEN, offset)
        scene.count("truncations")
        await self._look_behind(logs, first)

    async def _look_behind(self, logs: Logs, first: int) -> None:
        """Read beyond a cut: all records are still there."""
        scene = self._scene
        async with await logs.reader(WRITTEN, first) as reader:
            reading = scene.begin_reading(WRITTEN, self._name, first)
            try:
                for _ in range(3):
                    entry = await reader.next_entry(1.0)
                    if entry is None:
                        return
                    scene.note_read(WRITTEN, reading, entry)
            except (OffsetGap, NoSuchLedger) as error:
                scene.refused(WRITTEN, reading, error)


class FinalLogReader:
    """Reads at the end every log from its first offset to its end."""

    NAME = "final"

    def __init__(self, scene: LogModel) -> None:
        self._scene = scene

    async def __call__(self, client: Client) -> None:
        logs = self._scene.logs(client)
        for log in LOGS:
            while log not in self._scene.ends:
                try:
                    await self._read(logs, log)
                except (OffsetGap, NoSuchLedger) as error:
                    self._scene.refused(log, self.NAME, error)
                    return
                except UNKNOWN_OUTCOMES as error:
                    self._scene.trouble(error)
                    await asyncio.sleep(0.2)

    async def _read(self, logs: Logs, log: str) -> None:
        scene = self._scene
        if log == WRITTEN and scene.load.retain_size_bytes and not await scene.list_segments(logs, log, self.NAME):
            await asyncio.sleep(0.2)
            return
        head = await logs.head(log)
        end = await scene.ask_end(logs, log, self.NAME)
        scene.count("segments", len(await logs.segments(log)))
        scene.count("pages", len(head.pages))
        async with await logs.reader(log, head.first_offset) as reader:
            reading = scene.begin_reading(log, self.NAME, head.first_offset)
            while reader.position < end:
                entry = await reader.next_entry()
                assert entry is not None
                scene.note_read(log, reading, entry)
            scene.add(ReadingEnded(scene.time(), log, reading, end))
        scene.ends[log] = end
        scene.add(FinalLogRead(scene.time(), log, reading, head.first_offset, end))
