"""The batches that wait for the leader of a store, within bounds."""

from __future__ import annotations

import asyncio
from collections import deque

from triplicate.errors import StoreUnavailable
from triplicate.kv.core.operations import BatchResult, StoreBatch
from triplicate.runtime import TasklessFuture

QUEUE_MAX = 20_000
QUEUE_BYTES = 64 * 1024 * 1024
"""Upper bounds of the batches that wait."""


class QueuedBatch:
    """A batch that waits for its group."""

    __slots__ = ("answer", "batch", "size_bytes")

    def __init__(self, batch: StoreBatch, size_bytes: int) -> None:
        self.batch = batch
        self.size_bytes = size_bytes
        self.answer: TasklessFuture[BatchResult] = TasklessFuture(loop=asyncio.get_running_loop())


class BatchQueue:
    """The waiting batches of one store, oldest first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queued: deque[QueuedBatch] = deque()
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._queued)

    @property
    def first(self) -> QueuedBatch:
        return self._queued[0]

    def add(self, batch: StoreBatch, size_bytes: int) -> QueuedBatch:
        """Raises StoreUnavailable: too many wait."""
        if len(self._queued) >= QUEUE_MAX or self._size_bytes + size_bytes > QUEUE_BYTES:
            raise StoreUnavailable(
                f"{len(self._queued)} batches with {self._size_bytes} bytes wait for store {self._name!r} already; send fewer at a time"
            )
        queued = QueuedBatch(batch, size_bytes)
        self._queued.append(queued)
        self._size_bytes += size_bytes
        return queued

    def take(self) -> QueuedBatch:
        """Remove the first."""
        queued = self._queued.popleft()
        self._size_bytes -= queued.size_bytes
        return queued
