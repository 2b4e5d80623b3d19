"""The work of ``triplicate ledger append``: keeps the window full and prints ids when they are acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

from triplicate.cli.data_commands.entry_text import FixedSource, LineSource
from triplicate.cli.terminal.output import ProgressBar
from triplicate.client import LedgerWriter
from triplicate.errors import WindowFull
from triplicate.runtime import real_host


class PayloadSource(Protocol):
    async def next_batch(self) -> list[bytes]:
        """The next payloads; none at the end."""


@contextlib.asynccontextmanager
async def open_source(payloads: Sequence[str], file: str | None) -> AsyncIterator[PayloadSource]:
    """Payloads from the arguments, or from lines of a file, or from lines of standard input, for which ``-`` stands, too."""
    if tuple(payloads) != ("-",) and payloads:
        yield FixedSource(payloads)
        return
    worker = real_host("append").new_worker("lines")
    descriptor = sys.stdin.fileno() if file in (None, "-") else os.open(str(file), os.O_RDONLY)
    try:
        yield LineSource(descriptor, worker)
    finally:
        # Standard input must not be closed, and a blocked read must not delay the end: the worker's thread is a daemon.
        if descriptor != sys.stdin.fileno():
            os.close(descriptor)
            await worker.close()


async def append_all(writer: LedgerWriter, source: PayloadSource, *, print_ids: bool) -> dict[str, Any]:
    """Append every payload of `source`; returns entries, bytes and the first and last entry id.

    As many appends are on their way as the writer's window holds; ids are printed in order, each once it is acknowledged.

    Raises:
        TriplicateError: the writer failed. Printed ids are acknowledged nevertheless.
    """
    pending = _PendingAppends(writer, print_ids)
    with pending.bar:
        try:
            while batch := await source.next_batch():
                for payload in batch:
                    await pending.append(payload)
                # The pipe may be silent for long between batches: wait for outstanding appends, so that their ids are printed.
                await pending.drain()
        finally:
            pending.abandon()
    first, last = (pending.last - pending.entries + 1, pending.last) if pending.entries else (None, None)
    return {"entries": pending.entries, "bytes": pending.size_bytes, "first_entry_id": first, "last_entry_id": last}


class _PendingAppends:
    """Outstanding appends, oldest first."""

    def __init__(self, writer: LedgerWriter, print_ids: bool) -> None:
        self.bar = ProgressBar("appended", None)
        self.entries = 0
        self.size_bytes = 0
        self.last = -1
        self._writer = writer
        self._print_ids = print_ids
        self._waiting: deque[asyncio.Future[int]] = deque()

    async def append(self, payload: bytes) -> None:
        """Send one payload when the window has room for it."""
        while True:
            try:
                self._waiting.append(self._writer.append_nowait(payload))
                break
            except WindowFull:
                # The oldest is acknowledged next. Without outstanding appends of this object, `append` waits for room.
                if not self._waiting:
                    self._acknowledged(await self._writer.append(payload))
                    break
                self._acknowledged(await self._waiting.popleft())
        self.entries += 1
        self.size_bytes += len(payload)
        while self._waiting and self._waiting[0].done():
            self._acknowledged(await self._waiting.popleft())

    async def drain(self) -> None:
        """Wait until all sent payloads are acknowledged."""
        while self._waiting:
            self._acknowledged(await self._waiting.popleft())

    def abandon(self) -> None:
        """After a failure: the error was raised once, so the later futures need not report it."""
        for future in self._waiting:
            future.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _acknowledged(self, entry_id: int) -> None:
        self.last = entry_id
        self.bar.advance()
        if self._print_ids:
            sys.stdout.write(f"{entry_id}\n")
            sys.stdout.flush()
