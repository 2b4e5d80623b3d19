"""Appends to a ledger whose entry ids the caller chooses, in any order. `add_pipeline` sends and confirms the entries.

Source: BookKeeper `LedgerHandleAdv`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from triplicate.client.context import ClientContext
from triplicate.client.write.add_pipeline import AddPipeline, Payload
from triplicate.client.write.write_handle import WriteHandle
from triplicate.errors import ArgumentError, DuplicateEntry, TriplicateError
from triplicate.ledger import LAST_ENTRY_ID, AckDomains, AdvDomainWriteTracker, AdvWriteTracker
from triplicate.metadata import Versioned
from triplicate.runtime import fail, resolve


class _QueuedEntry:
    """An entry that waits for room in the window (RoomWaiter)."""

    __slots__ = ("_writer", "entry_id", "future", "payload")

    def __init__(self, writer: AdvLedgerWriter, entry_id: int, payload: bytes, future: asyncio.Future[int]) -> None:
        self.entry_id = entry_id
        self.payload = payload
        self.future = future
        self._writer = writer

    def proceed(self) -> bool:
        """Send the entry if there is room."""
        return self._writer._send_queued(self)

    def fail(self, error: BaseException) -> None:
        """Fail the append with its own copy of the error that ended the writer."""
        fail(self.future, self._writer._pipeline.unsent(error))


class AdvLedgerWriter(WriteHandle):
    """Entries are confirmed in the order of their ids, without gaps: an id that was never appended holds back every greater one.

    The lengths that entries carry grow in the order of appending, not of ids. The window bounds unconfirmed entries, including those
    behind a gap; the one entry that all others wait for is admitted even to a full window. Readers that follow the open ledger learn the
    last-add-confirmed from the entry of the greatest id, so set `explicit_lac_interval_s` where ids come far out of order.
    Made by `Client.create_adv`.

    Args:
        domains: the fault domains in which entries must be acknowledged; None: in any.
    """

    def __init__(
        self, context: ClientContext, ledger_id: int, created: Versioned, domains: AckDomains | None = None, *, deferred_sync: bool = False
    ) -> None:
        metadata = created.value
        self._loop = asyncio.get_running_loop()
        sizes = (metadata.last_segment.ensemble, metadata.write_quorum, metadata.ack_quorum)
        self._tracker = AdvWriteTracker(*sizes) if domains is None else AdvDomainWriteTracker(*sizes, domains)
        self._frames: dict[int, bytes] = {}
        """Frames of the entries that are pushed and not confirmed, by id."""
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._queue: dict[int, _QueuedEntry] = {}
        """The waiters in the window, by entry id."""
        pipeline = AddPipeline(context, ledger_id, created, self, self._tracker, self._frames, deferred_sync=deferred_sync)
        super().__init__(pipeline)
        self._window = pipeline.window
        self._sender = pipeline.sender
        self._overhead_bytes = pipeline.overhead_bytes

    async def append(self, entry_id: int, payload: Payload) -> int:
        """Append an entry under this id and return the id once it and every entry before it are durable on an ack quorum.

        Waits for room in the window, first come first served, except that entry last-add-confirmed + 1 goes first.
        Cancelling does not remove an entry that was sent; one that still waits for room is not sent.

        Raises:
            DuplicateEntry: the id was appended before, or is queued; nothing was sent. ArgumentError: it is negative or exceeds 2**63 - 1.
            Others as for `LedgerWriter.append`.
        """
        payload = self._validate(entry_id, payload)
        if self._try_admit(entry_id, payload):
            return await self._push(entry_id, payload)
        queued = self._queue[entry_id] = _QueuedEntry(self, entry_id, payload, self._loop.create_future())
        self._window.enqueue(queued)
        try:
            return await queued.future
        except asyncio.CancelledError:
            if self._queue.get(entry_id) is queued:
                del self._queue[entry_id]
            self._window.withdraw(queued)
            raise

    def append_nowait(self, entry_id: int, payload: Payload) -> asyncio.Future[int]:
        """Append without waiting for room; the future resolves to the id once it and every entry before it are durable.

        Raises:
            WindowFull: there is no room, or earlier appends wait for it, and this is not the entry that holds the others back.
            Others as for `append`.
        """
        payload = self._validate(entry_id, payload)
        if not self._try_admit(entry_id, payload):
            raise self._pipeline.window_full()
        return self._push(entry_id, payload)

    def _validate(self, entry_id: int, payload: Payload) -> bytes:
        if not isinstance(entry_id, int) or not 0 <= entry_id <= LAST_ENTRY_ID:
            raise ArgumentError(f"entry_id is {entry_id!r}; it must be a whole number from 0 to 2**63 - 1")
        payload = self._pipeline.validate(payload)
        queued = self._queue.get(entry_id)
        if self._tracker.is_taken(entry_id) or (queued is not None and not queued.future.done()):
            duplicate = DuplicateEntry(f"entry {entry_id} of ledger {self.ledger_id} was appended before; nothing was sent")
            duplicate.ledger_id = self.ledger_id
            raise duplicate
        return payload

    def _try_admit(self, entry_id: int, payload: bytes) -> bool:
        size_bytes = len(payload) + self._overhead_bytes
        if self._is_awaited(entry_id):
            self._window.occupy(1, size_bytes)
            return True
        return self._window.try_admit(1, size_bytes)

    def _send_queued(self, queued: _QueuedEntry) -> bool:
        """Send a queued entry if there is room. Returns whether it waits no longer."""
        if queued.future.done():
            return True
        if not self._window.try_occupy(1, len(queued.payload) + self._overhead_bytes):
            return False
        del self._queue[queued.entry_id]
        self._push(queued.entry_id, queued.payload, queued.future)
        return True

    def _is_awaited(self, entry_id: int) -> bool:
        """Whether this is the entry that holds back all others. A full window admits it, since otherwise nothing would ever leave it."""
        return entry_id == self._tracker.last_add_confirmed + 1

    def _push(self, entry_id: int, payload: bytes, future: asyncio.Future[int] | None = None) -> asyncio.Future[int]:
        self._tracker.push(entry_id)
        self._frames[entry_id] = self._sender.enqueue(entry_id, payload)
        waiting = self._waiting[entry_id] = self._loop.create_future() if future is None else future
        return waiting

    # For AddPipeline (Appender).

    @property
    def has_pending(self) -> bool:
        """Whether any entry may be confirmed without further appends."""
        return self._tracker.last_add_confirmed + 1 in self._frames

    def left_out(self) -> str:
        """Name the gap, if there are entries behind one."""
        if not self._frames and not self._queue:
            return ""
        gap = self._tracker.last_add_confirmed + 1
        return f"; entry {gap} was not appended or not waited for, and what follows it is not part of the ledger"

    def admit_awaited(self) -> None:
        """Send the queued entry that all unconfirmed ones wait for, whether or not there is room."""
        queued = self._queue.pop(self._tracker.last_add_confirmed + 1, None)
        if queued is not None and not queued.future.done():
            self._window.occupy(1, len(queued.payload) + self._overhead_bytes)
            self._push(queued.entry_id, queued.payload, queued.future)
            self._window.withdraw(queued)

    def frames_of(self, entry_ids: Sequence[int]) -> list[bytes]:
        """The frames of unconfirmed entries."""
        return [self._frames[entry_id] for entry_id in entry_ids]

    def release(self, before: int, confirmed: int) -> int:
        """Drop the frames of confirmed entries and resolve the futures of their appends; return the frames' bytes."""
        size = 0
        for entry_id in range(before + 1, confirmed + 1):
            size += len(self._frames.pop(entry_id))
            resolve(self._waiting.pop(entry_id), entry_id)
        return size

    def fail_pending(self, cause: TriplicateError) -> None:
        """Fail every pending append."""
        waiting = list(self._waiting.values())
        self._waiting.clear()
        self._queue.clear()
        for future in waiting:
            fail(future, self._pipeline.unknown_outcome(cause))
        self._window.fail(cause)
