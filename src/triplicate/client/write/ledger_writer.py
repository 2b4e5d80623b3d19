"""Appends to a ledger whose entries are numbered consecutively. `add_pipeline` sends and confirms them; see docs/append-path.md.

Source: BookKeeper `LedgerHandle`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from triplicate.client.context import ClientContext
from triplicate.client.write.add_pipeline import AddPipeline, Payload
from triplicate.client.write.ledger_close import fail_future
from triplicate.client.write.write_handle import WriteHandle
from triplicate.errors import TriplicateError
from triplicate.ledger import WriteTracker
from triplicate.metadata import Versioned


class _QueuedAppend:
    """An append that waits for room in the window."""

    __slots__ = ("first_entry_id", "future", "next", "payloads", "single")

    def __init__(self, payloads: Sequence[bytes], future: asyncio.Future[Any], single: bool) -> None:
        self.payloads = payloads
        self.future = future
        self.single = single
        self.next = 0
        self.first_entry_id = -1


class LedgerWriter(WriteHandle):
    """Numbers appends in the order in which the window admits them, and confirms them in that order. Made by `Client.create`."""

    def __init__(self, context: ClientContext, ledger_id: int, created: Versioned, *, deferred_sync: bool = False) -> None:
        metadata = created.value
        self._loop = asyncio.get_running_loop()
        self._tracker = WriteTracker(metadata.last_segment.ensemble, metadata.write_quorum, metadata.ack_quorum)
        self._frames: deque[bytes] = deque()
        """Frames of the entries behind the last one confirmed by the tracker, in order."""
        self._waiting: deque[tuple[int, asyncio.Future[Any], Any]] = deque()
        """(last entry id, future, result of the future) of appends that are numbered and not confirmed, in order.

        Plain tuples: one is made per append.
        """
        self._queue: deque[_QueuedAppend] = deque()
        pipeline = AddPipeline(context, ledger_id, created, self, self._tracker, self._frames, deferred_sync=deferred_sync)
        super().__init__(pipeline)
        self._window = pipeline.window
        self._sender = pipeline.sender

    @property
    def has_all_copies(self) -> bool:
        """Whether every bookie of the ensemble has acknowledged every entry that it should hold, which is more than an append waits for."""
        return self._tracker.has_all_copies

    async def append(self, payload: Payload) -> int:
        """Append an entry and return its id once it is durable on an ack quorum (with deferred sync: accepted by it).

        Waits for room in the window, first come first served. Cancelling does not remove an entry that is already numbered.

        Raises:
            RecordTooLarge: nothing was sent. HandleClosed: the writer was closed. LedgerFenced, LedgerClosed, NotEnoughBookies,
            Unauthorized, OutcomeUnknown: the writer ended; where the message says so, the entry may or may not survive.
        """
        payload = self._pipeline.validate(payload)
        if self._queue or not self._window.has_room(len(payload)):
            queued: int = await self._submit((payload,), single=True)
            return queued
        future: asyncio.Future[int] = self._loop.create_future()
        entry_id = self._tracker.push()
        self._frames.append(self._sender.enqueue(entry_id, payload))
        self._waiting.append((entry_id, future, entry_id))
        return await future

    def append_nowait(self, payload: Payload) -> asyncio.Future[int]:
        """Append without waiting for room; the future resolves to the entry id, in order.

        Raises:
            WindowFull: there is no room, or earlier appends wait for it. RecordTooLarge, HandleClosed and a writer's end: as for `append`.
        """
        payload = self._pipeline.validate(payload)
        if self._queue or not self._window.has_room(len(payload)):
            raise self._window.full_error()
        future: asyncio.Future[int] = self._loop.create_future()
        entry_id = self._tracker.push()
        self._frames.append(self._sender.enqueue(entry_id, payload))
        self._waiting.append((entry_id, future, entry_id))
        return future

    async def append_many(self, payloads: Iterable[Payload]) -> range:
        """Append entries with consecutive ids and return the range of them once all are confirmed.

        Entries beyond the window are sent as room is found, with no other append's entries between them. Cancelling leaves the entries
        that are already numbered in the ledger. Raises as `append`; nothing is sent when any payload is too large.
        """
        entry_ids: range = await self._submit([self._pipeline.validate(payload) for payload in payloads], single=False)
        return entry_ids

    def append_many_nowait(self, payloads: Iterable[Payload]) -> asyncio.Future[range]:
        """`append_many` without waiting for room; one future for all.

        Raises:
            WindowFull: no room for all of them. ArgumentError: more than the window ever holds. Others as for `append`.
        """
        batch = [self._pipeline.validate(payload) for payload in payloads]
        has_room = self._window.has_room_for(list(map(len, batch)))
        if batch and (self._queue or not has_room):
            raise self._window.full_error()
        future: asyncio.Future[range] = self._loop.create_future()
        first = self._tracker.last_add_pushed + 1
        for payload in batch:
            self._frames.append(self._sender.enqueue(self._tracker.push(), payload))
        self._await_confirmation(future, range(first, first + len(batch)))
        return future

    async def _submit(self, payloads: Sequence[bytes], *, single: bool) -> Any:
        self._pipeline.check_usable()
        queued = _QueuedAppend(payloads, self._loop.create_future(), single)
        self._queue.append(queued)
        if self._queue[0] is queued:
            self.admit()
        return await queued.future

    def _await_confirmation(self, future: asyncio.Future[range], entry_ids: range) -> None:
        if entry_ids:
            self._waiting.append((entry_ids[-1], future, entry_ids))
        else:
            future.set_result(entry_ids)

    # For AddPipeline (Appender).

    @property
    def has_pending(self) -> bool:
        """Whether an append is queued or unconfirmed."""
        return bool(self._frames or self._queue)

    def left_out(self) -> str:
        """Nothing to add: unconfirmed entries are left out only if the caller did not wait for them."""
        return ""

    def admit(self) -> None:
        """Number queued appends, in their order, as far as there is room."""
        queue, window = self._queue, self._window
        while queue:
            queued = queue[0]
            if not queued.future.done():
                payloads = queued.payloads
                while queued.next < len(payloads):
                    payload = payloads[queued.next]
                    if not window.has_room(len(payload)):
                        return
                    entry_id = self._tracker.push()
                    self._frames.append(self._sender.enqueue(entry_id, payload))
                    if queued.next == 0:
                        queued.first_entry_id = entry_id
                    queued.next += 1
                if queued.single:
                    self._waiting.append((queued.first_entry_id, queued.future, queued.first_entry_id))
                else:
                    first = queued.first_entry_id if payloads else self._tracker.last_add_pushed + 1
                    self._await_confirmation(queued.future, range(first, first + len(payloads)))
            queue.popleft()

    def frames_of(self, entry_ids: Sequence[int]) -> list[bytes]:
        """The frames of unconfirmed entries."""
        frames, first = tuple(self._frames), self._tracker.last_add_confirmed + 1
        return [frames[entry_id - first] for entry_id in entry_ids]

    def release(self, before: int, confirmed: int) -> int:
        """Drop the frames of confirmed entries and resolve the futures of their appends; return the frames' bytes."""
        popleft = self._frames.popleft
        size = len(popleft())
        for _ in range(confirmed - before - 1):
            size += len(popleft())
        waiting = self._waiting
        while waiting and waiting[0][0] <= confirmed:
            _, future, result = waiting.popleft()
            if not future.done():
                future.set_result(result)
        return size

    def fail_pending(self, cause: TriplicateError, unknown: str) -> None:
        """Fail every pending append."""
        copy = self._pipeline.copy_error
        while self._waiting:
            _, future, _ = self._waiting.popleft()
            fail_future(future, copy(cause, unknown))
        while self._queue:
            queued = self._queue.popleft()
            fail_future(queued.future, copy(cause, unknown if queued.next else f"{cause}; nothing of this append was sent"))
