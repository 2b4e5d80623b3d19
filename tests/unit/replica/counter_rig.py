"""A state machine that adds numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from triplicate.errors import Diverged, TriplicateError
from triplicate.log import LogEntry, LogWriter
from triplicate.replica import STANDS_AT


class Counter:
    """Keeps the values it was given; `disk` is what survives a restart."""

    def __init__(self, disk: list[bytes]) -> None:
        self.disk = disk
        self.writer: LogWriter | None = None
        self.led: list[int] = []
        self.reason: str | None = None
        self.faults: list[TriplicateError] = []
        self.follow_faults: list[TriplicateError] = []
        self.lead_fault: TriplicateError | None = None
        self.suspicion: str | None = None
        self.closed = False
        self.may_serve = asyncio.Event()
        """Unset while a leader still waits before it serves."""
        self.may_serve.set()

    @property
    def position(self) -> int:
        return len(self.disk)

    async def open(self) -> int:
        if self.reason is not None and not self.reason.startswith(STANDS_AT):
            raise Diverged(self.reason)
        self.suspicion = self.reason
        return self.position

    async def verify(self, entry: LogEntry | None) -> None:
        if entry is not None and (entry.end_offset != self.position or entry.values[-1] != self.disk[-1]):
            raise Diverged("the log holds something else")
        self.suspicion = self.reason = None

    async def follow(self) -> int:
        if self.follow_faults:
            raise self.follow_faults.pop()
        return self.position

    async def apply(self, entries: Sequence[LogEntry]) -> int:
        await asyncio.sleep(0)
        if self.faults:
            raise self.faults.pop()
        for entry in entries:
            assert entry.first_offset == self.position
            self.disk += [value or b"" for value in entry.values]
        return self.position

    async def lead(self, writer: LogWriter, serves: Callable[[], None]) -> None:
        assert self.position == writer.start_offset
        self.led.append(writer.start_offset)
        self.writer = writer
        try:
            await self.may_serve.wait()
            serves()
            while writer.failure is None:
                await asyncio.sleep(0.002)
                if self.lead_fault is not None:
                    fault, self.lead_fault = self.lead_fault, None
                    raise fault
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
