"""Watchers of one copy. They share one bounded buffer, and each has only a place in it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from triplicate.errors import StoreUnavailable
from triplicate.kv.core.change_buffer import ChangeBuffer
from triplicate.kv.core.store_interface import KeyChange
from triplicate.kv.storage.rocks_copy import AppliedBatch
from triplicate.runtime import resolve


class ChangeHub:
    """The recent changes of one copy, and everything that waits for it to move on.

    Args:
        name: of the store, for messages. size_bytes: upper bound of the changes that are kept.
    """

    def __init__(self, name: str, size_bytes: int) -> None:
        self._name = name
        self._size_bytes = size_bytes
        self.buffer = ChangeBuffer(size_bytes, 0)
        self.is_closed = False
        self._waiting: list[asyncio.Future[None]] = []

    def restart(self, position: int) -> None:
        """The copy is at a position, and the changes before it are not known."""
        if position != self.buffer.position:
            self.buffer = ChangeBuffer(self._size_bytes, position)
        self._wake()

    def publish(self, batches: Sequence[AppliedBatch]) -> None:
        """Batches are visible now."""
        for batch in batches:
            self.buffer.add(batch.position, batch.effects)
        self._wake()

    def progress(self) -> None:
        """The copy has moved on in time, without changes."""
        self._wake()

    def close(self) -> None:
        """End all watches."""
        self.is_closed = True
        self._wake()

    def check(self) -> None:
        """Raises StoreUnavailable: the copy is closed."""
        if self.is_closed:
            raise StoreUnavailable(f"this node closes its copy of store {self._name!r}; watch on another node from the same position")

    def moved(self) -> asyncio.Future[None]:
        """A future that is done when the copy has moved on, or is closed."""
        moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(moved)
        return moved

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            resolve(one, None)


class StoreWatch:
    """Implements `store_interface.KeyWatch`."""

    def __init__(self, hub: ChangeHub, prefix: bytes, position: int) -> None:
        self._hub = hub
        self._prefix = prefix
        self._is_closed = False
        self.position = position

    def __aiter__(self) -> StoreWatch:
        return self

    async def __anext__(self) -> Sequence[KeyChange]:
        while not self._is_closed:
            self._hub.check()
            taken = self._hub.buffer.take(self.position, self._prefix)
            is_at_end = taken.position == self.position
            self.position = taken.position
            if taken.changes:
                return taken.changes
            if is_at_end:
                await self._hub.moved()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._is_closed = True
        self._hub.progress()

    async def __aenter__(self) -> StoreWatch:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()
