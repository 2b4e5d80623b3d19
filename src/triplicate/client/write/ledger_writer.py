"""Appending to a ledger whose entries are numbered one after another. The way of the entries to the bookies is in `client.adds`.

Source: BookKeeper `LedgerHandle`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from triplicate.client.context import ClientContext
from triplicate.client.write.add_pipeline import AddPipeline, Payload
from triplicate.client.write.write_handle import WriteHandle
from triplicate.errors import TriplicateError
from triplicate.ledger import WriteTracker
from triplicate.metadata import Versioned


class _Queued:
    """Payloads that wait for room in the window."""

    __slots__ = ("first_entry_id", "future", "next", "payloads", "single")

    def __init__(self, payloads: Sequence[bytes], future: asyncio.Future[Any], single: bool) -> None:
        self.payloads = payloads
        self.future = future
        self.single = single
        self.next = 0
        self.first_entry_id = -1


class LedgerWriter(WriteHandle):
    """Appends are numbered in the order in which they find room in the window, and confirmed in that order. Made by `Client.create`."""

    def __init__(self, context: ClientContext, ledger_id: int, created: Versioned, *, deferred_sync: bool = False) -> None:
        metadata = created.value
        self._loop = asyncio.get_running_loop()
        self._tracker = WriteTracker(metadata.last_segment.ensemble, metadata.write_quorum, metadata.ack_quorum)
        self._frames: deque[bytes] = deque()
        """Frames of the entries behind the last one confirmed by the tracker, in order."""
        self._waiting: deque[tuple[int, asyncio.Future[Any], Any]] = deque()
        """(last entry id, future, its result) of appends that are numbered and not confirmed."""
        self._queue: deque[_Queued] = deque()
        adds = AddPipeline(context, ledger_id, created, self, self._tracker, self._frames, deferred_sync=deferred_sync)
        super().__init__(adds)

    @property
    def has_all_copies(self) -> bool:
        """Whether every bookie of the ensemble has acknowledged every entry that it should hold: more than an append waits for."""
        return self._tracker.has_all_copies

    async def append(self, payload: Payload) -> int:
        """Append an entry and return its id once it is durable on an ack quorum (with deferred sync: accepted by it).

        Waits, first come first served, for room in the window. Cancelling does not take back an entry that is already numbered.

        Raises:
            RecordTooLarge: nothing was sent. HandleClosed: the writer was closed. LedgerFenced, LedgerClosed, NotEnoughBookies,
            Unauthorized, OutcomeUnknown: the writer ended; where the message says so, the entry may or may not survive.
        """
        adds = self._adds
        payload = adds.own(payload)
        if self._queue or not adds.has_room(len(payload)):
            waited: int = await self._submit((payload,), single=True)
            return waited
        future: asyncio.Future[int] = self._loop.create_future()
        entry_id = self._tracker.push()
        self._frames.append(adds.put(entry_id, payload))
        self._waiting.append((entry_id, future, entry_id))
        return await future

    def append_nowait(self, payload: Payload) -> asyncio.Future[int]:
        """Append without waiting for room; the future resolves to the entry id, in order.

        Raises:
            WindowFull: no room, or others wait for it. RecordTooLarge, HandleClosed and a writer's end: as for `append`.
        """
        adds = self._adds
        payload = adds.own(payload)
        if self._queue or not adds.has_room(len(payload)):
            raise adds.window_full()
        future: asyncio.Future[int] = self._loop.create_future()
        entry_id = self._tracker.push()
        self._frames.append(adds.put(entry_id, payload))
        self._waiting.append((entry_id, future, entry_id))
        return future

    async def append_many(self, payloads: Iterable[Payload]) -> range:
        """Append entries with consecutive ids and return the range of them once all are confirmed.

        More than the window holds is sent as room is found; nobody else's entries come in between. Cancelling leaves those already
        numbered in the ledger. Raises as `append`; nothing is sent when any payload is too large.
        """
        entry_ids: range = await self._submit([self._adds.own(payload) for payload in payloads], single=False)
        return entry_ids

    def append_many_nowait(self, payloads: Iterable[Payload]) -> asyncio.Future[range]:
        """`append_many` without waiting for room; one future for all.

        Raises:
            WindowFull: no room for all of them. ArgumentError: more than the window ever holds. Others as for `append`.
        """
        adds = self._adds
        batch = [adds.own(payload) for payload in payloads]
        has_room = adds.has_room_for(list(map(len, batch)))
        if batch and (self._queue or not has_room):
            raise adds.window_full()
        future: asyncio.Future[range] = self._loop.create_future()
        first = self._tracker.last_add_pushed + 1
        for payload in batch:
            self._frames.append(adds.put(self._tracker.push(), payload))
        self._await_confirmation(future, range(first, first + len(batch)))
        return future

    async def _submit(self, payloads: Sequence[bytes], *, single: bool) -> Any:
        self._adds.check_usable()
        queued = _Queued(payloads, self._loop.create_future(), single)
        self._queue.append(queued)
        if self._queue[0] is queued:
            self.admit()
        return await queued.future

    def _await_confirmation(self, future: asyncio.Future[range], entry_ids: range) -> None:
        if entry_ids:
            self._waiting.append((entry_ids[-1], future, entry_ids))
        else:
            future.set_result(entry_ids)

    # For AddPipeline (Owner).

    @property
    def is_under_way(self) -> bool:
        """Whether anything waits or is not confirmed."""
        return bool(self._frames or self._queue)

    def left_out(self) -> str:
        """Nothing to add: what was not waited for is left out."""
        return ""

    def admit(self) -> None:
        """Number those who wait, in their order, as far as there is room."""
        queue, adds = self._queue, self._adds
        while queue:
            queued = queue[0]
            if not queued.future.done():
                payloads = queued.payloads
                while queued.next < len(payloads):
                    payload = payloads[queued.next]
                    if not adds.has_room(len(payload)):
                        return
                    entry_id = self._tracker.push()
                    self._frames.append(adds.put(entry_id, payload))
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
        """Frames of entries that are not confirmed."""
        frames, first = tuple(self._frames), self._tracker.last_add_confirmed + 1
        return [frames[entry_id - first] for entry_id in entry_ids]

    def release(self, before: int, confirmed: int) -> int:
        """Tell those whose entries are confirmed."""
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

    def give_up(self, cause: TriplicateError, unknown: str) -> None:
        """Fail everybody who waits."""
        settle = self._adds.settle
        while self._waiting:
            _, future, _ = self._waiting.popleft()
            settle(future, cause, unknown)
        while self._queue:
            queued = self._queue.popleft()
            settle(queued.future, cause, unknown if queued.next else f"{cause}; nothing of this append was sent")
