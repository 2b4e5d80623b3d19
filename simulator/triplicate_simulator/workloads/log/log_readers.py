"""Readers of the log workload, and the actor that truncates logs: tailers, readers of ranges, and a truncator that also sweeps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from triplicate.client import Client
from triplicate.errors import ArgumentError, NoSuchLedger, OffsetGap, OffsetTruncated
from triplicate.log import LogReader, Logs, OffsetRange
from triplicate.runtime import TaskScope
from triplicate_simulator.checkers.log_rules import FinalLogRead, ReadingEnded, TruncationRequested
from triplicate_simulator.workloads.log.log_model import LOGS, UNKNOWN_OUTCOMES, WRITTEN, LogModel
from triplicate_simulator.workloads.recreation.held_nodes import wait_for

PATIENCE_S = 2.0
"""A tailer that receives nothing for this time checks whether the log is finished."""

STAGED_SHARE = 0.4
"""Share of sweeps that run right after ledgers were staged: these are on no list yet, and must stay all the same."""


class LogTailer:
    """Follows a log to its end, from an offset that it keeps over crashes, or from the beginning again.

    Args:
        restarts: largest number of restarts of its own will.
    """

    def __init__(self, model: LogModel, name: str, log: str, *, restarts: int) -> None:
        self._model = model
        self._name = name
        self._log = log
        self._position = 0
        self._restarts = restarts
        self._rng = model.rng(name)

    async def __call__(self, client: Client) -> None:
        logs = self._model.logs(client)
        while not self._is_done():
            try:
                await self._follow(logs)
            except OffsetTruncated:
                self._model.count("readers_truncated")
                await self._find_first(logs)
            except UNKNOWN_OUTCOMES as error:
                self._model.count_error(error)
                await asyncio.sleep(0.2)

    def _is_done(self) -> bool:
        end = self._model.ends.get(self._log)
        return end is not None and self._position >= end

    async def _find_first(self, logs: Logs) -> None:
        try:
            self._position = max(self._position, (await logs.head(self._log)).first_offset)
        except UNKNOWN_OUTCOMES as error:
            self._model.count_error(error)

    async def _follow(self, logs: Logs) -> None:
        model = self._model
        if self._restarts and self._rng.random() < 0.3 and not model.faults_are_over:
            self._restarts -= 1
            self._position = (await logs.head(self._log)).first_offset
        async with await logs.reader(self._log, self._position, include_control=model.load.control) as reader:
            reading = model.begin_reading(self._log, self._name, self._position)
            stop_s = model.time() + self._rng.uniform(5.0, 60.0)
            while not self._is_done() and (model.time() < stop_s or model.faults_are_over):
                try:
                    await self._next(reader, reading)
                except OffsetTruncated:
                    raise
                except (OffsetGap, NoSuchLedger) as error:
                    model.note_refused(self._log, reading, error)
                    raise
                except UNKNOWN_OUTCOMES as error:
                    # The reader keeps its position and may be used again.
                    model.count_error(error)
                    await asyncio.sleep(0.1)
                    if self._rng.random() < 0.5:
                        return

    async def _next(self, reader: LogReader, reading: str) -> None:
        entry = await reader.next_entry(PATIENCE_S)
        while entry is not None:
            self._model.note_read(self._log, reading, entry)
            self._position = entry.end_offset
            assert reader.position == self._position, f"{self._name} was given {entry} and stands at {reader.position}"
            entry = await reader.next_entry(0)


class LogRangeReader:
    """Plans ranges of a log and reads them concurrently, as parallel tasks of one query do. Reads the end of logs in between."""

    def __init__(self, model: LogModel, name: str) -> None:
        self._model = model
        self._name = name
        self._rng = model.rng(name)

    async def __call__(self, client: Client) -> None:
        logs = self._model.logs(client)
        while True:
            await asyncio.sleep(self._rng.expovariate(0.7))
            log = self._rng.choice(LOGS)
            try:
                end = await self._model.read_end(logs, log, self._name)
                if self._rng.random() < 0.25:
                    await self._read(logs, log, end)
            except OffsetTruncated:
                self._model.count("readers_truncated")
            except UNKNOWN_OUTCOMES as error:
                self._model.count_error(error)

    async def _read(self, logs: Logs, log: str, end: int) -> None:
        first = (await logs.head(log)).first_offset
        start = max(first, end - self._rng.choice([10, 30, 100]))
        if start >= end:
            return
        size = self._rng.randrange(5, 40)
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
        model = self._model
        reading = model.begin_reading(log, f"{self._name} of ledger {planned.ledger_id}", planned.first_offset)
        try:
            async with logs.read_range(planned) as reader:
                async for entry in reader:
                    model.note_read(log, reading, entry)
        except (OffsetGap, NoSuchLedger) as error:
            # An open ledger's bookies may have been away for so long that the reader gave up; a closed one's records must be there.
            head = await logs.head(log)
            if planned.first_offset >= head.first_offset and (isinstance(error, NoSuchLedger) or planned.last_entry is not None):
                model.note_refused(log, reading, error)
        except UNKNOWN_OUTCOMES as error:
            model.count_error(error)
        else:
            model.add(ReadingEnded(model.time(), log, reading, planned.end_offset))
            model.count("ranges_read")


class LogTruncator:
    """Truncates the log that writers compete for, and sweeps all logs."""

    def __init__(self, model: LogModel, name: str) -> None:
        self._model = model
        self._name = name
        self._rng = model.rng(name)
        self._truncations = model.load.truncations

    async def __call__(self, client: Client) -> None:
        model = self._model
        logs = model.logs(client)
        while True:
            pause_s = self._rng.uniform(3.0, 9.0)
            log = await self._wait_for_staged(pause_s) if self._rng.random() < STAGED_SHARE else await asyncio.sleep(pause_s, "")
            try:
                if model.load.retain_size_bytes:
                    await model.list_segments(logs, WRITTEN, self._name)
                if not log and self._truncations and self._rng.random() < 0.7:
                    self._truncations -= 1
                    await self._truncate(logs)
                else:
                    swept = await logs.sweep(log or self._rng.choice(LOGS))
                    model.count("pages_swept", swept["pages"])
                    model.count("ledgers_swept", swept["ledgers"])
                    model.count("publishers_forgotten", swept["publishers"])
            except ArgumentError as error:
                # The bookies that answer now may know an earlier end of an open segment than those that answered before.
                model.count_error(error)
            except UNKNOWN_OUTCOMES as error:
                model.count_error(error)

    async def _wait_for_staged(self, seconds: float) -> str:
        """Wait for staged ledgers that are about to be published. Returns their log, or nothing after the time."""
        model = self._model
        model.has_staged.clear()
        return model.staged[-1] if await wait_for(model.has_staged, seconds) else ""

    async def _truncate(self, logs: Logs) -> None:
        model = self._model
        end = await model.read_end(logs, WRITTEN, self._name)
        first = (await logs.head(WRITTEN)).first_offset
        # Anywhere, and sometimes right at the end.
        offset = max(first, self._rng.choice([end, self._rng.randrange(first, end + 1), self._rng.randrange(first, end + 1)]))
        model.add(TruncationRequested(model.time(), WRITTEN, offset))
        first = await logs.truncate(WRITTEN, offset)
        model.count("truncations")
        await self._check_after_cut(logs, first)

    async def _check_after_cut(self, logs: Logs, first: int) -> None:
        """Read beyond a cut: all records are still there."""
        model = self._model
        async with await logs.reader(WRITTEN, first) as reader:
            reading = model.begin_reading(WRITTEN, self._name, first)
            try:
                for _ in range(3):
                    entry = await reader.next_entry(1.0)
                    if entry is None:
                        return
                    model.note_read(WRITTEN, reading, entry)
            except (OffsetGap, NoSuchLedger) as error:
                model.note_refused(WRITTEN, reading, error)


class FinalLogReader:
    """Reads at the end every log from its first offset to its end."""

    NAME = "final"

    def __init__(self, model: LogModel, logs: Sequence[str] = LOGS) -> None:
        self._model = model
        self._logs = logs

    async def __call__(self, client: Client) -> None:
        logs = self._model.logs(client)
        for log in self._logs:
            while log not in self._model.ends:
                try:
                    await self._read(logs, log)
                except (OffsetGap, NoSuchLedger) as error:
                    self._model.note_refused(log, self.NAME, error)
                    return
                except UNKNOWN_OUTCOMES as error:
                    self._model.count_error(error)
                    await asyncio.sleep(0.2)

    async def _read(self, logs: Logs, log: str) -> None:
        model = self._model
        if log == WRITTEN and model.load.retain_size_bytes and not await model.list_segments(logs, log, self.NAME):
            await asyncio.sleep(0.2)
            return
        head = await logs.head(log)
        end = await model.read_end(logs, log, self.NAME)
        model.count("segments", len(await logs.segments(log)))
        model.count("pages", len(head.pages))
        async with await logs.reader(log, head.first_offset) as reader:
            reading = model.begin_reading(log, self.NAME, head.first_offset)
            while reader.position < end:
                entry = await reader.next_entry()
                assert entry is not None
                model.note_read(log, reading, entry)
            model.add(ReadingEnded(model.time(), log, reading, end))
        model.ends[log] = end
        model.add(FinalLogRead(model.time(), log, reading, head.first_offset, end))
