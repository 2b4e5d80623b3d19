"""Appends to a ledger whose entries are numbered consecutively. `add_pipeline` sends and confirms them; see docs/append-path.md.

Source: BookKeeper `LedgerHandle`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from triplicate.client.context import ClientContext
from triplicate.client.write.add_pipeline import AddPipeline, Error, Payload
from triplicate.client.write.write_handle import WriteHandle
from triplicate.errors import ArgumentError, TriplicateError
from triplicate.ledger import AckDomains, DomainWriteTracker, WriteTracker
from triplicate.metadata import Versioned
from triplicate.runtime import fail, resolve


class _QueuedAppend:
    """An append that waits for room in the window (RoomWaiter)."""

    __slots__ = ("_writer", "first_entry_id", "future", "next", "payloads", "single")

    def __init__(self, writer: LedgerWriter, payloads: Sequence[bytes], future: asyncio.Future[Any], *, single: bool) -> None:
        self.payloads = payloads
        self.future = future
        self.single = single
        self.next = 0
        self.first_entry_id = -1
        self._writer = writer

    def proceed(self) -> bool:
        """Number the payloads for which there is room."""
        return self._writer._number(self)

    def fail(self, error: BaseException) -> None:
        """Fail the append with its own copy of the error that ended the writer."""
        fail(self.future, self._writer._error_of(self, error))


class LedgerWriter(WriteHandle):
    """Numbers appends in the order in which the window admits them, and confirms them in that order. Made by `Client.create`."""

    def __init__(
        self, context: ClientContext, ledger_id: int, created: Versioned, domains: AckDomains | None = None, *, deferred_sync: bool = False
    ) -> None:
        metadata = created.value
        self._loop = asyncio.get_running_loop()
        sizes = (metadata.last_segment.ensemble, metadata.write_quorum, metadata.ack_quorum)
        self._tracker = WriteTracker(*sizes) if domains is None else DomainWriteTracker(*sizes, domains)
        self._frames: deque[bytes] = deque()
        """Frames of the entries behind the last one confirmed by the tracker, in order."""
        self._waiting: deque[tuple[int, asyncio.Future[Any], Any]] = deque()
        """(last entry id, future, result of the future) of appends that are numbered and not confirmed, in order.

        Plain tuples: one is made per append.
        """
        pipeline = AddPipeline(context, ledger_id, created, self, self._tracker, self._frames, deferred_sync=deferred_sync)
        super().__init__(pipeline)
        self._window = pipeline.window
        self._sender = pipeline.sender
        self._overhead_bytes = pipeline.overhead_bytes

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
        if not self._window.try_admit(1, len(payload) + self._overhead_bytes):
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
        if not self._window.try_admit(1, len(payload) + self._overhead_bytes):
            raise self._pipeline.window_full()
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
        size_bytes = sum(map(len, batch)) + len(batch) * self._overhead_bytes
        self._check_window_holds(len(batch), size_bytes)
        if batch and not self._window.try_admit(len(batch), size_bytes):
            raise self._pipeline.window_full()
        future: asyncio.Future[range] = self._loop.create_future()
        first = self._tracker.last_add_pushed + 1
        for payload in batch:
            self._frames.append(self._sender.enqueue(self._tracker.push(), payload))
        self._await_confirmation(future, range(first, first + len(batch)))
        return future

    def _check_window_holds(self, count: int, size_bytes: int) -> None:
        window = self._window
        if count > window.limit_entries or size_bytes > max(window.limit_bytes, self.largest_payload_bytes):
            raise ArgumentError(
                f"{count} payloads of {size_bytes} bytes exceed the window of {window.limit_entries} entries and "
                f"{window.limit_bytes} bytes; await append_many instead, or send fewer at a time"
            )

    async def _submit(self, payloads: Sequence[bytes], *, single: bool) -> Any:
        self._pipeline.check_usable()
        queued = _QueuedAppend(self, payloads, self._loop.create_future(), single=single)
        self._window.enqueue(queued)
        try:
            return await queued.future
        except asyncio.CancelledError:
            self._window.withdraw(queued)
            raise

    def _await_confirmation(self, future: asyncio.Future[range], entry_ids: range) -> None:
        if entry_ids:
            self._waiting.append((entry_ids[-1], future, entry_ids))
        else:
            resolve(future, entry_ids)

    def _number(self, queued: _QueuedAppend) -> bool:
        """Number the payloads of a queued append for which there is room. Returns whether it is done."""
        if queued.future.done():
            return True
        payloads = queued.payloads
        while queued.next < len(payloads):
            payload = payloads[queued.next]
            if not self._window.try_occupy(1, len(payload) + self._overhead_bytes):
                return False
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
        return True

    def _error_of(self, queued: _QueuedAppend, cause: Error) -> Error:
        return self._pipeline.unknown_outcome(cause) if queued.next else self._pipeline.unsent(cause)

    # For AddPipeline (Appender).

    @property
    def has_pending(self) -> bool:
        """Whether an append is queued or unconfirmed."""
        return bool(self._frames) or self._window.has_waiters

    def left_out(self) -> str:
        """Nothing to add: unconfirmed entries are left out only if the caller did not wait for them."""
        return ""

    def admit_awaited(self) -> None:
        """Nothing to do: ids are given in the order of admission, so that no queued entry precedes an unconfirmed one."""

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

    def fail_pending(self, cause: TriplicateError) -> None:
        """Fail every pending append."""
        while self._waiting:
            _, future, _ = self._waiting.popleft()
            fail(future, self._pipeline.unknown_outcome(cause))
        self._window.fail(cause)
