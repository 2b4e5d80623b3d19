"""How much of a writer may be unacknowledged: entries and bytes, first come first served."""

from __future__ import annotations

import asyncio
from collections import deque


class AdmissionWindow:
    """Counts what is outstanding and lets appenders wait for room.

    A single entry larger than all of the window is let in when nothing else is outstanding, so that every legal entry can be sent.
    """

    def __init__(self, entries: int, size_bytes: int) -> None:
        self._limit_entries = entries
        self._limit_bytes = size_bytes
        self._entries = 0
        self._bytes = 0
        self._waiting: deque[tuple[asyncio.Future[None], int, int]] = deque()
        self._waking = 0
        """How many have their room and have not run since: who comes now comes after them."""

    def take_nowait(self, entries: int, size_bytes: int) -> bool:
        """Take room if there is some and nobody waits for it."""
        if self._waiting or self._waking or not self._fits(entries, size_bytes):
            return False
        self._entries += entries
        self._bytes += size_bytes
        return True

    async def take(self, entries: int, size_bytes: int) -> None:
        """Wait for room and take it. Raises what `fail` was given."""
        if self.take_nowait(entries, size_bytes):
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((granted, entries, size_bytes))
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                self._waking -= 1
                self.give_back(entries, size_bytes)
            else:
                self._waiting = deque(item for item in self._waiting if item[0] is not granted)
                self._grant()
            raise
        self._waking -= 1
        self._grant()

    def give_back(self, entries: int, size_bytes: int) -> None:
        """Room is free again: let those in who wait longest."""
        self._entries -= entries
        self._bytes -= size_bytes
        self._grant()

    def count(self, entries: int) -> None:
        """Entries made of bytes that have their room already."""
        self._entries += entries

    def fail(self, error: BaseException) -> None:
        """Wake everybody who waits, with an error."""
        waiting, self._waiting = self._waiting, deque()
        for granted, _, _ in waiting:
            if not granted.done():
                granted.set_exception(error)
                granted.exception()

    def _grant(self) -> None:
        while self._waiting:
            granted, entries, size_bytes = self._waiting[0]
            if granted.done():
                self._waiting.popleft()
                continue
            if not self._fits(entries, size_bytes):
                return
            self._waiting.popleft()
            self._entries += entries
            self._bytes += size_bytes
            self._waking += 1
            granted.set_result(None)

    def _fits(self, entries: int, size_bytes: int) -> bool:
        if self._entries + self._bytes == 0:
            return True
        return self._entries + entries <= self._limit_entries and self._bytes + size_bytes <= self._limit_bytes
