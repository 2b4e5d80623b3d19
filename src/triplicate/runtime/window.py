"""The admission window of a writer: it bounds the entries and bytes that are not acknowledged."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from triplicate.runtime.oneshot import fail, has_result, resolve


class RoomWaiter(Protocol):
    """A caller that waits for room in an `AdmissionWindow`."""

    def proceed(self) -> bool:
        """Occupy room with `AdmissionWindow.try_occupy`, in one or several parts; return False when a part finds no room.

        Called when the waiter is first in line and there may be room.
        """

    def fail(self, error: BaseException) -> None:
        """End the wait with an error: the window's owner has ended."""


class AdmissionWindow:
    """Counts outstanding entries and bytes, and admits waiters in the order in which they came.

    An entry larger than the whole window is admitted while nothing else is outstanding, so that every legal entry can be sent.
    A caller tries `try_admit` first, which makes no object. Then it awaits `admit`, or queues a `RoomWaiter`, which proceeds within
    `release`. All callers of one window wait in the same way, since a coroutine that is granted room resumes later.

    Attributes:
        entries, size_bytes: what is outstanding.
        limit_entries, limit_bytes: the limits.
        is_paused: nothing is admitted for now, for a reason outside the window. After setting it to False, call `admit_waiters`.
    """

    __slots__ = ("_waiters", "_waking", "entries", "is_paused", "limit_bytes", "limit_entries", "size_bytes")

    def __init__(self, entries: int, size_bytes: int) -> None:
        self.limit_entries = entries
        self.limit_bytes = size_bytes
        self.entries = 0
        self.size_bytes = 0
        self.is_paused = False
        self._waiters: deque[RoomWaiter] = deque()
        self._waking = 0
        """Coroutines that were granted room and have not resumed: newcomers queue behind them."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is outstanding."""
        return not self.entries and not self.size_bytes

    @property
    def is_full(self) -> bool:
        """Whether something waits for room, or would."""
        return bool(self._waiters) or self.is_paused or self.entries >= self.limit_entries or self.size_bytes >= self.limit_bytes

    @property
    def has_waiters(self) -> bool:
        """Whether anything waits for room."""
        return bool(self._waiters)

    def try_admit(self, entries: int, size_bytes: int) -> bool:
        """Occupy room if there is enough and nothing waits for it. Returns whether it did."""
        if self._waiters or self._waking or self.is_paused:
            return False
        # As `try_occupy`, without a second call: this is on the path of every append.
        entries += self.entries
        size_bytes += self.size_bytes
        if (entries > self.limit_entries or size_bytes > self.limit_bytes) and not self.is_empty:
            return False
        self.entries = entries
        self.size_bytes = size_bytes
        return True

    def try_occupy(self, entries: int, size_bytes: int) -> bool:
        """Occupy room if there is enough, without regard to waiters: for the waiter that is first. Returns whether it did."""
        entries += self.entries
        size_bytes += self.size_bytes
        if self.is_paused or ((entries > self.limit_entries or size_bytes > self.limit_bytes) and not self.is_empty):
            return False
        self.entries = entries
        self.size_bytes = size_bytes
        return True

    def occupy(self, entries: int, size_bytes: int) -> None:
        """Count entries and bytes that need no admission. They may exceed the limits."""
        self.entries += entries
        self.size_bytes += size_bytes

    def release(self, entries: int, size_bytes: int) -> None:
        """Free room, and admit the longest waiters."""
        self.entries -= entries
        self.size_bytes -= size_bytes
        assert self.entries >= 0, "more entries are released than were admitted"
        assert self.size_bytes >= 0, "more bytes are released than were admitted"
        if self._waiters:
            self.admit_waiters()

    async def admit(self, entries: int, size_bytes: int) -> None:
        """Wait for room and occupy it. Cancellation gives back what was granted. Raises the error given to `fail`."""
        if self.try_admit(entries, size_bytes):
            return
        waiter = _Admission(self._grant, entries, size_bytes)
        self._waiters.append(waiter)
        try:
            await waiter.granted
        except asyncio.CancelledError:
            if waiter.is_granted:
                self._waking -= 1
                self.release(entries, size_bytes)
            else:
                self.withdraw(waiter)
            raise
        self._waking -= 1
        self.admit_waiters()

    def _grant(self, entries: int, size_bytes: int) -> bool:
        if not self.try_occupy(entries, size_bytes):
            return False
        self._waking += 1
        return True

    def enqueue(self, waiter: RoomWaiter) -> None:
        """Queue a waiter behind the others. It may proceed at once."""
        self._waiters.append(waiter)
        if self._waiters[0] is waiter:
            self.admit_waiters()

    def withdraw(self, waiter: RoomWaiter) -> None:
        """Remove a waiter that no longer wants room, and admit those behind it. Harmless if it does not wait."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
            self.admit_waiters()

    def admit_waiters(self) -> None:
        """Admit waiters in their order as far as there is room."""
        waiters = self._waiters
        while waiters and waiters[0].proceed():
            waiters.popleft()

    def fail(self, error: BaseException) -> None:
        """Fail all waiters with an error."""
        while self._waiters:
            self._waiters.popleft().fail(error)


class _Admission:
    """A coroutine in `AdmissionWindow.admit` (RoomWaiter)."""

    __slots__ = ("_entries", "_grant", "_size_bytes", "granted")

    def __init__(self, grant: Callable[[int, int], bool], entries: int, size_bytes: int) -> None:
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._grant = grant
        self._entries = entries
        self._size_bytes = size_bytes

    @property
    def is_granted(self) -> bool:
        """Whether it occupies its room."""
        return has_result(self.granted)

    def proceed(self) -> bool:
        """Wake the coroutine if there is room (RoomWaiter)."""
        if self.granted.done():  # Its task was cancelled and has not resumed.
            return True
        if not self._grant(self._entries, self._size_bytes):
            return False
        resolve(self.granted, None)
        return True

    def fail(self, error: BaseException) -> None:
        """Raise the error in the coroutine (RoomWaiter)."""
        fail(self.granted, error)
