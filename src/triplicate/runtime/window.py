"""The admission window of a writer: it bounds the entries and bytes that are not acknowledged."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from triplicate.runtime.oneshot import fail


class _Waiter(NamedTuple):
    granted: asyncio.Future[None]
    entries: int
    size_bytes: int


class AdmissionWindow:
    """Counts outstanding entries and bytes, and admits waiters in the order in which they came. Cancelling a waiter is safe.

    An entry larger than the whole window is admitted while nothing else is outstanding, so that every legal entry can be sent.

    Args:
        entries, size_bytes: the limits.
    """

    def __init__(self, entries: int, size_bytes: int) -> None:
        self._limit_entries = entries
        self._limit_bytes = size_bytes
        self._entries = 0
        self._bytes = 0
        self._waiters: deque[_Waiter] = deque()
        self._waking = 0
        """Waiters that were granted room and have not resumed: newcomers queue behind them."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is outstanding."""
        return self._entries + self._bytes == 0

    def try_admit(self, entries: int, size_bytes: int) -> bool:
        """Occupy room if there is enough and nothing waits for it."""
        if self._waiters or self._waking or not self._fits(entries, size_bytes):
            return False
        self._entries += entries
        self._bytes += size_bytes
        return True

    async def admit(self, entries: int, size_bytes: int) -> None:
        """Wait for room and occupy it. Raises the error given to `fail`."""
        if self.try_admit(entries, size_bytes):
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(_Waiter(granted, entries, size_bytes))
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                self._waking -= 1
                self.release(entries, size_bytes)
            else:
                self._waiters = deque(waiter for waiter in self._waiters if waiter.granted is not granted)
                self._grant()
            raise
        self._waking -= 1
        self._grant()

    def add_entry(self) -> None:
        """Count one more entry, made of bytes that were admitted before. It may exceed the limit."""
        self._entries += 1

    def release(self, entries: int, size_bytes: int) -> None:
        """Free room, and grant it to the longest waiters."""
        self._entries -= entries
        self._bytes -= size_bytes
        assert self._entries >= 0, "more entries are released than were admitted"
        assert self._bytes >= 0, "more bytes are released than were admitted"
        if self._waiters:
            self._grant()

    def fail(self, error: BaseException) -> None:
        """Fail all waiters with an error."""
        waiters, self._waiters = self._waiters, deque()
        for waiter in waiters:
            fail(waiter.granted, error)

    def _grant(self) -> None:
        while self._waiters:
            granted, entries, size_bytes = self._waiters[0]
            if granted.done():
                self._waiters.popleft()
                continue
            if not self._fits(entries, size_bytes):
                return
            self._waiters.popleft()
            self._entries += entries
            self._bytes += size_bytes
            self._waking += 1
            granted.set_result(None)

    def _fits(self, entries: int, size_bytes: int) -> bool:
        if self._entries + self._bytes == 0:
            return True
        return self._entries + entries <= self._limit_entries and self._bytes + size_bytes <= self._limit_bytes
