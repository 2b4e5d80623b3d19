"""A bounded queue between tasks of one loop."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

from triplicate.errors import ArgumentError, HandleClosed

T = TypeVar("T")


class BoundedChannel(Generic[T]):
    """First in, first out, at most `limit` items; the putter waits when it is full, the getter when it is empty.

    Cancellation is all or nothing: a cancelled `get` has taken nothing; a cancelled `put` has put nothing, unless room was found in
    the very turn of the loop in which the cancellation arrived. Waiters are served in the order in which they came.
    """

    def __init__(self, limit: int) -> None:
        """
        Raises:
            ArgumentError: `limit` is less than 1.
        """
        if limit < 1:
            raise ArgumentError(f"a channel's limit must be at least 1, not {limit}")
        self.limit = limit
        self._items: deque[T] = deque()
        self._getters: deque[asyncio.Future[None]] = deque()
        self._putters: deque[tuple[asyncio.Future[None], T]] = deque()
        self._closed = False
        self._error: BaseException | None = None

    def __len__(self) -> int:
        return len(self._items)

    @property
    def closed(self) -> bool:
        return self._closed

    def offer(self, item: T) -> bool:
        """Put without waiting; False when it is full.

        Raises:
            HandleClosed: the channel was closed (or the error given to `close`).
        """
        if self._closed:
            raise self._end()
        if len(self._items) >= self.limit:
            return False
        self._items.append(item)
        self._wake_getter()
        return True

    async def put(self, item: T) -> None:
        """Put, waiting for room behind those who already wait.

        Raises:
            HandleClosed: the channel was closed (or the error given to `close`) before there was room.
        """
        if not self._putters and self.offer(item):
            return
        if self._closed:
            raise self._end()
        room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = (room, item)
        self._putters.append(waiting)
        try:
            await room
        except asyncio.CancelledError:
            # Nobody has taken the item over: forget it. Otherwise it is in the channel already and stays there.
            if not room.done() or room.cancelled():
                self._putters = deque(entry for entry in self._putters if entry is not waiting)
            raise

    def get_nowait(self) -> T:
        """Take the oldest item.

        Raises:
            IndexError: it is empty. HandleClosed: it is empty and closed (or the error given to `close`).
        """
        if not self._items and self._closed:
            raise self._end()
        item = self._items.popleft()
        while self._putters and len(self._items) < self.limit:
            room, waiting = self._putters.popleft()
            if not room.done():
                self._items.append(waiting)
                self._wake_getter()
                room.set_result(None)
        return item

    async def get(self) -> T:
        """Take the oldest item, waiting for one.

        Raises:
            HandleClosed: closed and empty (or the error given to `close`).
        """
        while not self._items:
            if self._closed:
                raise self._end()
            arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(arrived)
            try:
                await arrived
            except asyncio.CancelledError:
                if arrived in self._getters:
                    self._getters.remove(arrived)
                elif self._items:
                    # We were told of an item that we no longer want: tell the next one.
                    self._wake_getter()
                raise
        return self.get_nowait()

    def close(self, error: BaseException | None = None) -> None:
        """Take no more; what is queued can still be got. Waiting putters, and getters once it is empty, get `error` or HandleClosed."""
        if self._closed:
            return
        self._closed = True
        self._error = error
        while self._putters:
            room, _ = self._putters.popleft()
            if not room.done():
                room.set_exception(self._end())
        while self._getters:
            self._wake_getter()

    def __aiter__(self) -> BoundedChannel[T]:
        return self

    async def __anext__(self) -> T:
        """Like `get`; ends the iteration when the channel was closed without an error."""
        try:
            return await self.get()
        except HandleClosed:
            if self._error is None:
                raise StopAsyncIteration from None
            raise

    def _end(self) -> BaseException:
        return self._error if self._error is not None else HandleClosed("the channel is closed")

    def _wake_getter(self) -> None:
        while self._getters:
            arrived = self._getters.popleft()
            if not arrived.done():
                arrived.set_result(None)
                return
