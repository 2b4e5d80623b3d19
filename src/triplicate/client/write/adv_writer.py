"""Appending to a ledger whose entry ids the caller chooses, in any order. The way of the entries to the bookies is in `client.adds`.

Source: BookKeeper `LedgerHandleAdv`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from triplicate.client.context import ClientContext
from triplicate.client.write.add_pipeline import AddPipeline, Payload
from triplicate.client.write.write_handle import WriteHandle
from triplicate.errors import ArgumentError, DuplicateEntry, TriplicateError
from triplicate.ledger import LAST_ENTRY_ID, AdvWriteTracker
from triplicate.metadata import Versioned


class AdvLedgerWriter(WriteHandle):
    """Entries are confirmed in the order of their ids, without gaps: an id that was never appended holds back every greater one.

    The lengths that entries carry grow in the order of appending, not of ids. The window bounds what is not confirmed, what a gap
    holds back included; the one entry that everything waits for is let in even when the window is full. Readers who follow the open
    ledger learn from the entry of the greatest id how far it is confirmed, so where ids come far out of order, set
    `explicit_lac_interval_s`. Made by `Client.create_adv`.
    """

    def __init__(self, context: ClientContext, ledger_id: int, created: Versioned, *, deferred_sync: bool = False) -> None:
        metadata = created.value
        self._loop = asyncio.get_running_loop()
        self._tracker = AdvWriteTracker(metadata.last_segment.ensemble, metadata.write_quorum, metadata.ack_quorum)
        self._frames: dict[int, bytes] = {}
        """Frames of the entries that are pushed and not confirmed."""
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._queue: OrderedDict[int, tuple[bytes, asyncio.Future[int]]] = OrderedDict()
        """Entries that wait for room in the window."""
        super().__init__(AddPipeline(context, ledger_id, created, self, self._tracker, self._frames, deferred_sync=deferred_sync))

    async def append(self, entry_id: int, payload: Payload) -> int:
        """Append an entry under this id and return the id once it and every entry before it are durable on an ack quorum.

        Waits for room in the window, first come first served but for the entry behind the last confirmed one, which goes first.
        Cancelling does not take back an entry that is on its way; one that still waits for room is not sent.

        Raises:
            DuplicateEntry: the id was appended before, or waits; nothing was sent. ArgumentError: it is negative or exceeds 2**63 - 1.
            Others as for `LedgerWriter.append`.
        """
        payload = self._check(entry_id, payload)
        if self._fits(entry_id, payload):
            return await self._push(entry_id, payload)
        future: asyncio.Future[int] = self._loop.create_future()
        self._queue[entry_id] = (payload, future)
        return await future

    def append_nowait(self, entry_id: int, payload: Payload) -> asyncio.Future[int]:
        """Append without waiting for room; the future resolves to the id once it and every entry before it are durable.

        Raises:
            WindowFull: no room, or others wait for it, and this is not the entry that holds the others back. Others as for `append`.
        """
        payload = self._check(entry_id, payload)
        if not self._fits(entry_id, payload):
            raise self._adds.window_full()
        return self._push(entry_id, payload)

    def _check(self, entry_id: int, payload: Payload) -> bytes:
        if not isinstance(entry_id, int) or not 0 <= entry_id <= LAST_ENTRY_ID:
            raise ArgumentError(f"entry_id is {entry_id!r}; it must be a whole number from 0 to 2**63 - 1")
        payload = self._adds.own(payload)
        queued = self._queue.get(entry_id)
        if self._tracker.is_taken(entry_id) or (queued is not None and not queued[1].done()):
            duplicate = DuplicateEntry(f"entry {entry_id} of ledger {self.ledger_id} was appended before; nothing was sent")
            duplicate.ledger_id = self.ledger_id
            raise duplicate
        return payload

    def _fits(self, entry_id: int, payload: bytes) -> bool:
        return self._is_awaited(entry_id) or (not self._queue and self._adds.has_room(len(payload)))

    def _is_awaited(self, entry_id: int) -> bool:
        """Whether this is the entry that holds back all others. It is let in beyond the window, or nothing would ever leave it."""
        return entry_id == self._tracker.last_add_confirmed + 1

    def _push(self, entry_id: int, payload: bytes, future: asyncio.Future[int] | None = None) -> asyncio.Future[int]:
        self._tracker.push(entry_id)
        self._frames[entry_id] = self._adds.put(entry_id, payload)
        waiting = self._waiting[entry_id] = self._loop.create_future() if future is None else future
        return waiting

    # For AddPipeline (Owner).

    @property
    def is_under_way(self) -> bool:
        """Whether anything is left that may be confirmed without further appends."""
        return self._tracker.last_add_confirmed + 1 in self._frames

    def left_out(self) -> str:
        """Names the gap, where entries lie behind one."""
        if not self._frames and not self._queue:
            return ""
        gap = self._tracker.last_add_confirmed + 1
        return f"; entry {gap} was not appended or not waited for, and what follows it is not part of the ledger"

    def admit(self) -> None:
        """Let in those who wait: the entry that all others need, then in their order as far as there is room."""
        queue = self._queue
        while queue:
            entry_id = self._tracker.last_add_confirmed + 1
            if entry_id not in queue:
                entry_id = next(iter(queue))
            payload, future = queue[entry_id]
            if not future.done():
                if not self._is_awaited(entry_id) and not self._adds.has_room(len(payload)):
                    return
                self._push(entry_id, payload, future)
            del queue[entry_id]

    def frames_of(self, entry_ids: Sequence[int]) -> list[bytes]:
        """Frames of entries that are not confirmed."""
        return [self._frames[entry_id] for entry_id in entry_ids]

    def release(self, before: int, confirmed: int) -> int:
        """Tell those whose entries are confirmed."""
        size = 0
        for entry_id in range(before + 1, confirmed + 1):
            size += len(self._frames.pop(entry_id))
            future = self._waiting.pop(entry_id)
            if not future.done():
                future.set_result(entry_id)
        return size

    def give_up(self, cause: TriplicateError, unknown: str) -> None:
        """Fail everybody who waits."""
        waiting, queue = list(self._waiting.values()), list(self._queue.values())
        self._waiting.clear()
        self._queue.clear()
        for future in waiting:
            self._adds.settle(future, cause, unknown)
        for _, future in queue:
            self._adds.settle(future, cause, f"{cause}; nothing of this append was sent")
