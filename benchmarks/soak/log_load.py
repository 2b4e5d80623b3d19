"""The clients of logs in a soak run, as processes of their own: writers at a fixed rate, and tailers.

Records and outcomes are written to files at once, so that the memory of these processes is that of the library. One JSON object per line
on standard input is a command: ``write`` and ``tail`` begin, ``figures`` reports, ``stop`` ends.

Lines of a writer's file: ``s RECORD`` before an append, ``a RECORD OFFSET`` after its acknowledgement. Lines of a tailer's file:
``OFFSET RECORD``.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TextIO

from benchmarks.driving import run_loop, serve_commands
from benchmarks.soak.verdicts import LogHistory
from triplicate.client import Client, connect
from triplicate.config import ClientSettings
from triplicate.errors import TriplicateError
from triplicate.log import LogReader, Logs, LogSettings, LogWriter

UNACKNOWLEDGED_MAX = 64
"""Appends of one writer without an answer. At this number it skips further ones."""
AGAIN_S = 0.2
"""Pause after an error."""
NEXT_S = 1.0
CLOSE_LIMIT_S = 60.0
TRASH_PERIOD_S = 20.0
"""A ledger in the trash keeps a bookie with replaced disks in limbo for this time. Bookies keep its entries longer."""
LOG_SETTINGS = {
    "plain": LogSettings(roll_size_bytes=512 * 1024, roll_age_s=30),
    "busy": LogSettings(roll_size_bytes=2 * 1024 * 1024, roll_age_s=60),
    "striped": LogSettings(ensemble_size=4, write_quorum=2, ack_quorum=2, roll_size_bytes=1024 * 1024, roll_age_s=45),
}


class Writing:
    """The writer of one log."""

    def __init__(self, logs: Logs, name: str, file: TextIO, rate: float, size: int) -> None:
        self._logs = logs
        self._name = name
        self._file = file
        self._interval_s = 1 / rate
        self._filling = os.urandom(size)
        self._writer: LogWriter | None = None
        self._waiting: set[asyncio.Task[None]] = set()
        self._next = 0
        self._over = False
        self.acknowledged = 0
        self.failed = 0
        self.skipped = 0
        self.last_acknowledged_s = 0.0
        """Begin of the last append that was acknowledged, on the machine's monotonic clock."""
        self.longest_s = 0.0
        """Longest time between the acknowledgements of two successive appends."""
        self._acknowledged_s = time.monotonic()

    async def run(self) -> None:
        due = time.monotonic()
        while not self._over:
            if self._writer is None:
                await self._open()
            elif len(self._waiting) < UNACKNOWLEDGED_MAX:
                task = asyncio.create_task(self._append(self._writer, self._next))
                self._next += 1
                self._waiting.add(task)
                task.add_done_callback(self._waiting.discard)
            else:
                self.skipped += 1
            due = max(due + self._interval_s, time.monotonic() - 1)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        async with asyncio.timeout(CLOSE_LIMIT_S):
            await asyncio.gather(*self._waiting)
        await self._close()

    def stop(self) -> None:
        self._over = True

    async def _open(self) -> None:
        try:
            self._writer = await self._logs.writer(self._name, owner="soak")
        except TriplicateError:
            self.failed += 1
            await asyncio.sleep(AGAIN_S)

    async def _append(self, writer: LogWriter, record: int) -> None:
        self._file.write(f"s {record}\n")
        begun = time.monotonic()
        try:
            offset = await writer.append(b"%d " % record + self._filling)
        except TriplicateError:
            # The outcome is unknown, and the record is not sent again.
            self.failed += 1
            if self._writer is writer and writer.failure is not None:
                await self._close()
            return
        self._file.write(f"a {record} {offset}\n")
        self.acknowledged += 1
        now = time.monotonic()
        self.longest_s = max(self.longest_s, now - self._acknowledged_s)
        self._acknowledged_s = now
        self.last_acknowledged_s = max(self.last_acknowledged_s, begun)

    async def _close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                await writer.close()
            except TriplicateError:
                self.failed += 1  # The next writer ends the segment.


class Tailing:
    """A reader that follows one log from its beginning."""

    def __init__(self, logs: Logs, name: str, file: TextIO) -> None:
        self._logs = logs
        self._name = name
        self._file = file
        self.position = 0
        self.failed = 0

    async def run(self) -> None:
        while True:
            reader: LogReader | None = None
            try:
                reader = await self._logs.reader(self._name, self.position)
                while True:
                    await self._next(reader)
            except TriplicateError:
                self.failed += 1
                await asyncio.sleep(AGAIN_S)
            finally:
                if reader is not None:
                    await reader.aclose()

    async def _next(self, reader: LogReader) -> None:
        entry = await reader.next_entry(NEXT_S)
        if entry is not None:
            for offset, value in zip(entry.offsets, entry.values, strict=True):
                self._file.write(f"{offset} {record_of(value)}\n")
            self.position = entry.end_offset


def record_of(value: bytes | None) -> int:
    """The number of a record."""
    return int((value or b"-1").partition(b" ")[0])


class Commands:
    """One process of clients."""

    def __init__(self) -> None:
        self._connection = AsyncExitStack()
        self._files: list[TextIO] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._writing: dict[str, Writing] = {}
        self._tailing: dict[str, Tailing] = {}

    async def run(self, command: dict[str, Any]) -> dict[str, Any]:
        match command.pop("do"):
            case "write":
                return await self._write(**command)
            case "tail":
                return await self._tail(**command)
            case "stop":
                return await self._stop()
            case _:
                return self._figures()

    async def _connect(self, uri: str, name: str) -> Client:
        return await self._connection.enter_async_context(connect(uri, settings=ClientSettings(trash_period_s=TRASH_PERIOD_S), name=name))

    def _open(self, path: Path) -> TextIO:
        file = path.open("w", buffering=1)
        self._files.append(file)
        return file

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _write(self, uri: str, folder: str, rate: float, size: int) -> dict[str, Any]:
        logs = Logs(await self._connect(uri, "writers"))
        for name, settings in LOG_SETTINGS.items():
            await logs.create(name, settings)
            self._writing[name] = Writing(logs, name, self._open(Path(folder) / f"{name}.writer"), rate, size)
            self._spawn(self._writing[name].run())
        return {}

    async def _tail(self, uri: str, folder: str, tailers: int) -> dict[str, Any]:
        logs = Logs(await self._connect(uri, "tailers"))
        for name in LOG_SETTINGS:
            for number in range(1, tailers + 1):
                key = f"{name}.tailer-{number}"
                self._tailing[key] = Tailing(logs, name, self._open(Path(folder) / key))
                self._spawn(self._tailing[key].run())
        return {}

    def _figures(self) -> dict[str, Any]:
        for task in self._tasks:
            if task.done():
                task.result()  # A defect of this program must not look like an idle client.
        writing = self._writing.values()
        return {
            "acknowledged": sum(one.acknowledged for one in writing),
            "failed": sum(one.failed for one in writing) + sum(one.failed for one in self._tailing.values()),
            "skipped": sum(one.skipped for one in writing),
            "longest_s": max((one.longest_s for one in writing), default=0.0),
            "last_acknowledged_s": min((one.last_acknowledged_s for one in writing), default=0.0),
            "positions": {name: one.position for name, one in self._tailing.items()},
        }

    async def _stop(self) -> dict[str, Any]:
        for one in self._writing.values():
            one.stop()
        if self._writing:
            await asyncio.gather(*self._tasks)
        figures = self._figures()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for file in self._files:
            file.close()
        await self._connection.aclose()
        return figures


def history_of(folder: Path, name: str, final: list[tuple[int, int]]) -> LogHistory:
    """The history of one log, from the files of its clients.

    Args:
        final: offset and record of each record at the end.
    """
    acknowledged: dict[int, int] = {}
    sent: set[int] = set()
    for line in (folder / f"{name}.writer").read_text().splitlines():
        what, *numbers = line.split()
        if what == "s":
            sent.add(int(numbers[0]))
        else:
            acknowledged[int(numbers[1])] = int(numbers[0])
    tailers = {path.name: _pairs(path) for path in sorted(folder.glob(f"{name}.tailer-*"))}
    return LogHistory(name, acknowledged, frozenset(sent), final, tailers)


def _pairs(path: Path) -> list[tuple[int, int]]:
    lines = path.read_text().splitlines()
    return [(int(offset), int(record)) for offset, record in map(str.split, lines)]


if __name__ == "__main__":
    run_loop(serve_commands(Commands().run))
