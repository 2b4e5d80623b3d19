"""Our client under measurement as a separate process: the commands of ``Commands.java``, one JSON object per line."""

from __future__ import annotations

import asyncio
import ctypes
import functools
import math
import os
import struct
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import triplicate
from benchmarks.driving import run_loop, serve_commands
from benchmarks.ledger.figures import summary
from triplicate import Client, ClientSettings, LedgerReader, LedgerWriter
from triplicate.errors import TriplicateError, WindowFull

AT_ONCE = 64
"""Maximum of concurrent creations and closes."""
READS_AT_ONCE = 4
"""As in ``Reading.java``."""
END_S = 30.0
NS_PER_S = 1_000_000_000
STAMP = struct.Struct(">q")
CLOCK_MONOTONIC = 1
Command = dict[str, Any]


class Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Pace:
    """Wakes the loop at a fixed rate by a kernel timer, since the loop's own timers have a resolution of a millisecond."""

    def __init__(self, rate: float) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor: int = libc.timerfd_create(CLOCK_MONOTONIC, os.O_NONBLOCK)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        interval_ns = int(NS_PER_S / rate)
        once = Timespec(interval_ns // NS_PER_S, interval_ns % NS_PER_S)
        if libc.timerfd_settime(self._descriptor, 0, (Timespec * 2)(once, once), None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def start(self, due: Callable[[], None]) -> None:
        def fired() -> None:
            os.read(self._descriptor, 8)
            due()

        asyncio.get_running_loop().add_reader(self._descriptor, fired)

    def stop(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)


class Rated:
    """Appends at a fixed rate without waiting for outcomes; latencies count from the instant at which each append was due."""

    def __init__(self, writer: LedgerWriter, size: int, rate: float, count: int) -> None:
        self._writer = writer
        self._rest = os.urandom(size - STAMP.size)
        self._interval_ns = NS_PER_S / rate
        self._count = count
        self._sent = 0
        self._left = count
        self._pace = Pace(rate)
        self._done = asyncio.Event()
        self._late: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self.latencies: list[int] = []

    async def run(self) -> None:
        self._started = time.monotonic_ns()
        self._pace.start(self._send_due)
        try:
            async with asyncio.timeout(self._count * self._interval_ns / NS_PER_S + END_S):
                await self._done.wait()
        finally:
            self._pace.stop()
        if self._failure is not None:
            raise self._failure

    def _send_due(self) -> None:
        while self._sent < self._count and self._failure is None:
            due = self._started + int(self._sent * self._interval_ns)
            if due > time.monotonic_ns():
                return
            self._sent += 1
            self._send(due, STAMP.pack(due) + self._rest)

    def _send(self, due: int, payload: bytes) -> None:
        try:
            self._writer.append_nowait(payload).add_done_callback(functools.partial(self._appended, due))
        except WindowFull:
            task = asyncio.get_running_loop().create_task(self._wait_and_send(due, payload))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
        except TriplicateError as error:
            self._fail(error)

    async def _wait_and_send(self, due: int, payload: bytes) -> None:
        future = asyncio.ensure_future(self._writer.append(payload))
        future.add_done_callback(functools.partial(self._appended, due))
        await asyncio.wait([future])

    def _appended(self, due: int, future: asyncio.Future[int]) -> None:
        self.latencies.append(time.monotonic_ns() - due)
        error = future.exception()
        if error is not None:
            self._fail(error)
        self._left -= 1
        if not self._left:
            self._done.set()

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self._done.set()


class Commands:
    def __init__(self, client: Client | None = None) -> None:
        self._connection = AsyncExitStack()
        self._client = client
        self._writers: dict[int, LedgerWriter] = {}

    @property
    def client(self) -> Client:
        assert self._client is not None
        return self._client

    async def run(self, command: Command) -> Command:
        carry_out: Callable[[Command], Awaitable[Command]] = getattr(self, f"do_{command['do']}")
        return await carry_out(command)

    async def do_connect(self, command: Command) -> Command:
        await self._connection.aclose()
        self._writers.clear()
        settings = ClientSettings(**command["settings"])
        self._client = await self._connection.enter_async_context(triplicate.connect(command["uri"], settings=settings))
        return {}

    async def do_create(self, command: Command) -> Command:
        sizes = {name: command[name] for name in ("ensemble_size", "write_quorum", "ack_quorum")}
        started = time.monotonic()
        made: list[LedgerWriter] = []

        async def create(_: int) -> None:
            made.append(await self.client.create(**sizes))

        await _all_of(create, range(command["count"]))
        self._writers.update((writer.ledger_id, writer) for writer in made)
        return {"ledgers": sorted(writer.ledger_id for writer in made), "seconds": time.monotonic() - started}

    async def do_append(self, command: Command) -> Command:
        payload = os.urandom(command["size"])
        writers = [self._writers[ledger_id] for ledger_id in command["ledgers"]]
        latencies: list[int] = []
        clock = time.monotonic_ns
        started = clock()
        until = started + int(command["seconds"] * NS_PER_S)

        async def appender(writer: LedgerWriter) -> None:
            append = writer.append
            while True:
                called = clock()
                if called >= until:
                    return
                await append(payload)
                latencies.append(clock() - called)

        async with asyncio.timeout(command["seconds"] + END_S), asyncio.TaskGroup() as group:
            for index in range(command["window"]):
                group.create_task(appender(writers[index % len(writers)]))
        return _described(latencies, started)

    async def do_append_rate(self, command: Command) -> Command:
        rated = Rated(self._writers[command["ledgers"][0]], command["size"], command["rate"], command["count"])
        started = time.monotonic_ns()
        await rated.run()
        return _described(rated.latencies, started)

    async def do_append_count(self, command: Command) -> Command:
        payload, count = os.urandom(command["size"]), command["count"]
        started = time.monotonic()
        step = max(1, command["window"] // 4)

        async def fill(ledger_id: int) -> None:
            writer = self._writers[ledger_id]
            for first in range(0, count, step):
                await writer.append_many([payload] * min(step, count - first))

        await _all_of(fill, command["ledgers"])
        return {"seconds": time.monotonic() - started}

    @asynccontextmanager
    async def _reader(self, ledger_id: int) -> AsyncIterator[LedgerReader]:
        reader = await self.client.open(ledger_id)
        try:
            yield reader
        finally:
            await reader.aclose()

    async def do_read(self, command: Command) -> Command:
        """Read all of a ledger, or as much of it as arrives within `seconds`."""
        started = time.monotonic()
        until = started + command.get("seconds", math.inf)
        async with self._reader(command["ledger"]) as reader:
            read = _batches if command["batch"] else _ranges
            entries = size = 0
            last, chunk = reader.last_add_confirmed, command["chunk"]
            firsts = iter(range(0, last + 1, chunk))
            under: deque[asyncio.Task[tuple[int, int]]] = deque()
            while True:
                while len(under) < READS_AT_ONCE and time.monotonic() < until and (first := next(firsts, None)) is not None:
                    under.append(asyncio.create_task(read(reader, first, min(last, first + chunk - 1))))
                if not under:
                    break
                found, found_bytes = await under.popleft()
                if time.monotonic() < until:
                    entries, size = entries + found, size + found_bytes
        ended = time.monotonic()
        seconds = min(ended, until) - started
        rates = {"per_s": entries / seconds, "mib_per_s": size / seconds / (1 << 20)}
        return {"seconds": seconds, "entries": entries, "bytes": size, "stopped": ended >= until, **rates}

    async def do_tail(self, command: Command) -> Command:
        latencies: list[int] = []
        async with self._reader(command["ledger"]) as reader, reader.tail(command["first"]) as tail:
            while len(latencies) < command["count"]:
                entries = await tail.next_entries()
                arrived = time.monotonic_ns()
                latencies.extend([arrived - STAMP.unpack_from(entry.payload)[0] for entry in entries])
        return summary(latencies)

    async def do_recover(self, command: Command) -> Command:
        started = time.monotonic()
        reader = await self.client.recover(command["ledger"])
        seconds = time.monotonic() - started
        await reader.aclose()
        return {"seconds": seconds, "last_entry_id": reader.last_add_confirmed}

    async def do_close(self, command: Command) -> Command:
        del command

        async def close(writer: LedgerWriter) -> None:
            await writer.close()

        await _all_of(close, list(self._writers.values()))
        self._writers.clear()
        return {}


async def _ranges(reader: LedgerReader, first: int, last: int) -> tuple[int, int]:
    entries = await reader.read(first, last)
    return len(entries), sum([len(entry.payload) for entry in entries])


async def _batches(reader: LedgerReader, first: int, last: int) -> tuple[int, int]:
    count = size = 0
    while first <= last:
        entries = await reader.read_batch(first, last - first + 1, 4 << 20)
        first += len(entries)
        count, size = count + len(entries), size + sum([len(entry.payload) for entry in entries])
    return count, size


async def _all_of(carry_out: Callable[[Any], Awaitable[None]], items: Any) -> None:
    """Run coroutines, `AT_ONCE` at a time."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await carry_out(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(worker())


def _described(latencies: list[int], started_ns: int) -> Command:
    seconds = (time.monotonic_ns() - started_ns) / NS_PER_S
    return {"seconds": seconds, "per_s": len(latencies) / seconds, **summary(latencies)}


if __name__ == "__main__":
    run_loop(serve_commands(Commands().run))
