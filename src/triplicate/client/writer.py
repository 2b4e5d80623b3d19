"""Appending to a ledger: the window, the frames on their way, confirmation in order, and what ends a writer.

Per entry: one header packed, one digest, one join, one future. Everything else happens once per turn of the loop (sending) or once
per chunk of answers (confirming). `WriteTracker` decides what is confirmed; the change of ensembles is in `client.ensemble`.
Source: BookKeeper `LedgerHandle`, `PendingAddOp`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

from triplicate.client.answers import error_of
from triplicate.client.channel import AddLane
from triplicate.client.ensemble import EnsembleChanger
from triplicate.client.patience import Patience
from triplicate.client.pool import Services
from triplicate.errors import (
    ArgumentError,
    BookieError,
    HandleClosed,
    LedgerClosed,
    LedgerFenced,
    OutcomeUnknown,
    RecordTooLarge,
    TriplicateError,
    Unauthorized,
    WindowFull,
)
from triplicate.ledger import EntryCodec, LedgerMetadata, LedgerState, WriteTracker, write_sets
from triplicate.metadata import Versioned
from triplicate.runtime import shielded
from triplicate.wire import ADD_HEAD_BYTES, Status, add_prefix

ENVELOPE_BYTES = 256
"""Room left in a frame for what version 3 of the protocol puts around an entry, so that every client can read what we wrote."""

Payload = bytes | bytearray | memoryview


class _Queued:
    """Payloads that wait for room in the window."""

    __slots__ = ("first_entry_id", "future", "next", "payloads", "single")

    def __init__(self, payloads: Sequence[bytes], future: asyncio.Future[Any], single: bool) -> None:
        self.payloads = payloads
        self.future = future
        self.single = single
        self.next = 0
        self.first_entry_id = -1


class LedgerWriter:
    """The one writer of a ledger. Made by `Client.create`.

    Appends are numbered in the order in which they find room in the window, and confirmed in that order. Leaving ``async with``
    closes the ledger. After a failure every further append raises it; what was not yet confirmed has an unknown outcome, which only
    recovery of the ledger decides.
    """

    def __init__(self, services: Services, ledger_id: int, created: Versioned) -> None:
        metadata = created.value
        self.ledger_id = ledger_id
        self._services = services
        self._loop = asyncio.get_running_loop()
        self._codec = EntryCodec(ledger_id, metadata.digest_type, metadata.password)
        self._encode = self._codec.encode
        self._tracker = WriteTracker(metadata.last_segment.ensemble, metadata.write_quorum, metadata.ack_quorum)
        self._striped = metadata.write_quorum < metadata.ensemble_size
        self._window_entries = services.settings.window_entries
        self._window_bytes = services.settings.window_bytes
        self._overhead = ADD_HEAD_BYTES + self._codec.overhead
        self.largest_payload_bytes = services.settings.frame_limit_bytes - ENVELOPE_BYTES - self._overhead
        self._length = 0
        self._prefix = b""
        self._prefix_size = -1
        self._frames: deque[bytes] = deque()
        """Frames of the entries behind the last-add-confirmed, in order."""
        self._pending_bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[Any], Any]] = deque()
        """(last entry id, future, its result) of appends that are numbered and not confirmed."""
        self._queue: deque[_Queued] = deque()
        self._out: list[bytes] = []
        self._flush_due = False
        self._full = False
        self._sent_at: deque[tuple[int, float]] = deque()
        self._idle: asyncio.Future[None] | None = None
        self._failure: TriplicateError | None = None
        self._closing = False
        self._closed: asyncio.Future[int] | None = None
        self._changer = EnsembleChanger(services, self, self._tracker, created)
        self._lanes: list[AddLane | None] = [self._open_lane(bookie_id) for bookie_id in self._tracker.ensemble]

    # What is known.

    @property
    def metadata(self) -> LedgerMetadata:
        """As last written by this writer."""
        return self._changer.current.value

    @property
    def last_add_confirmed(self) -> int:
        """Id of the last entry that, with all before it, has an ack quorum; -1 before the first."""
        return self._tracker.last_add_confirmed

    @property
    def last_add_pushed(self) -> int:
        """Id of the last entry that was numbered; -1 before the first."""
        return self._tracker.last_add_pushed

    @property
    def length(self) -> int:
        """Payload bytes of the confirmed entries."""
        return self._length - (self._pending_bytes - len(self._frames) * self._overhead)

    @property
    def ensemble_changes(self) -> int:
        """How often a bookie had to be replaced."""
        return self._changer.changes

    @property
    def failure(self) -> TriplicateError | None:
        """What ended this writer, if anything did."""
        return self._failure

    @property
    def is_finished(self) -> bool:
        """Whether it was closed or abandoned, so that nothing of it needs to be ended any more."""
        return self._closing and (self._closed is None or self._closed.done())

    # Appending.

    async def append(self, payload: Payload) -> int:
        """Append an entry and return its id once it is durable on an ack quorum.

        Waits, first come first served, for room in the window. Cancelling does not take back an entry that is already numbered.

        Raises:
            RecordTooLarge: nothing was sent. HandleClosed: the writer was closed. LedgerFenced, LedgerClosed, NotEnoughBookies,
            Unauthorized, OutcomeUnknown: the writer ended; where the message says so, the entry may or may not survive.
        """
        payload = self._own(payload)
        if self._queue or not self._has_room(len(payload)):
            waited: int = await self._submit((payload,), single=True)
            return waited
        future: asyncio.Future[int] = self._loop.create_future()
        entry_id = self._push(payload)
        self._waiting.append((entry_id, future, entry_id))
        return await future

    def append_nowait(self, payload: Payload) -> asyncio.Future[int]:
        """Append without waiting for room; the future resolves to the entry id, in order.

        Raises:
            WindowFull: no room, or others wait for it. RecordTooLarge, HandleClosed and a writer's end: as for `append`.
        """
        payload = self._own(payload)
        if self._queue or not self._has_room(len(payload)):
            raise self._window_full()
        future: asyncio.Future[int] = self._loop.create_future()
        entry_id = self._push(payload)
        self._waiting.append((entry_id, future, entry_id))
        return future

    async def append_many(self, payloads: Iterable[Payload]) -> range:
        """Append entries with consecutive ids and return the range of them once all are confirmed.

        More than the window holds is sent as room is found; nobody else's entries come in between. Cancelling leaves those already
        numbered in the ledger. Raises as `append`; nothing is sent when any payload is too large.
        """
        entry_ids: range = await self._submit([self._own(payload) for payload in payloads], single=False)
        return entry_ids

    def append_many_nowait(self, payloads: Iterable[Payload]) -> asyncio.Future[range]:
        """`append_many` without waiting for room; one future for all.

        Raises:
            WindowFull: no room for all of them. ArgumentError: more than the window ever holds. Others as for `append`.
        """
        batch = [self._own(payload) for payload in payloads]
        total = sum(map(len, batch)) + len(batch) * self._overhead
        if len(batch) > self._window_entries or total > max(self._window_bytes, self.largest_payload_bytes):
            raise ArgumentError(
                f"{len(batch)} payloads of {total} bytes exceed the window of {self._window_entries} entries and "
                f"{self._window_bytes} bytes; await append_many instead, or send fewer at a time"
            )
        pending = len(self._frames)
        fits = pending + len(batch) <= self._window_entries and (not pending or self._pending_bytes + total <= self._window_bytes)
        if batch and (self._queue or self._full or not fits):
            raise self._window_full()
        future: asyncio.Future[range] = self._loop.create_future()
        first = self._tracker.last_add_pushed + 1
        for payload in batch:
            self._push(payload)
        self._await_confirmation(future, range(first, first + len(batch)))
        return future

    async def _submit(self, payloads: Sequence[bytes], *, single: bool) -> Any:
        self._check_usable()
        queued = _Queued(payloads, self._loop.create_future(), single)
        self._queue.append(queued)
        if self._queue[0] is queued:
            self._admit()
        return await queued.future

    def _admit(self) -> None:
        """Number those who wait, in their order, as far as there is room."""
        queue = self._queue
        while queue:
            queued = queue[0]
            if not queued.future.done():
                payloads = queued.payloads
                while queued.next < len(payloads):
                    if not self._has_room(len(payloads[queued.next])):
                        return
                    entry_id = self._push(payloads[queued.next])
                    if queued.next == 0:
                        queued.first_entry_id = entry_id
                    queued.next += 1
                if queued.single:
                    self._waiting.append((queued.first_entry_id, queued.future, queued.first_entry_id))
                else:
                    first = queued.first_entry_id if payloads else self._tracker.last_add_pushed + 1
                    self._await_confirmation(queued.future, range(first, first + len(payloads)))
            queue.popleft()

    def _await_confirmation(self, future: asyncio.Future[range], entry_ids: range) -> None:
        if entry_ids:
            self._waiting.append((entry_ids[-1], future, entry_ids))
        else:
            future.set_result(entry_ids)

    def _has_room(self, size: int) -> bool:
        if self._full:
            return False
        pending = len(self._frames)
        if not pending:
            return True
        return pending < self._window_entries and self._pending_bytes + size + self._overhead <= self._window_bytes

    def _push(self, payload: bytes) -> int:
        """Number, encode and put on the way."""
        size = len(payload)
        if size != self._prefix_size:
            self._prefix = add_prefix(self._codec.overhead + size, 0, self._codec.master_key)
            self._prefix_size = size
        tracker = self._tracker
        self._length += size
        entry_id = tracker.push()
        frame = self._encode(entry_id, tracker.last_add_confirmed, self._length, payload, self._prefix)
        self._frames.append(frame)
        self._pending_bytes += len(frame)
        self._out.append(frame)
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self.flush)
        return entry_id

    def flush(self) -> None:
        """Send what was numbered since the last turn of the loop."""
        self._flush_due = False
        out, self._out = self._out, []
        if not out:
            return
        last = self._tracker.last_add_pushed
        self._sent_at.append((last, self._services.host.clock.monotonic()))
        if self._striped:
            self._send_stripes(out, last - len(out) + 1)
            return
        frames = out[0] if len(out) == 1 else b"".join(out)
        for lane in self._lanes:
            if lane is not None and not lane.send(frames, last, len(out)):
                self._channel_is_full(lane)

    def _send_stripes(self, out: list[bytes], first: int) -> None:
        size = len(self._lanes)
        shares: list[list[bytes]] = [[] for _ in range(size)]
        lasts = [-1] * size
        sets = write_sets(size, self.metadata.write_quorum)
        for entry_id, frame in enumerate(out, first):
            for position in sets[entry_id % size]:
                shares[position].append(frame)
                lasts[position] = entry_id
        for lane, share, last in zip(self._lanes, shares, lasts, strict=True):
            if lane is not None and share and not lane.send(b"".join(share), last, len(share)):
                self._channel_is_full(lane)

    def _channel_is_full(self, lane: AddLane) -> None:
        self._full = True
        lane.wait_for_room()

    # Answers (AddSink).

    def adds_acknowledged(self, bookie_id: str, entry_ids: Sequence[int]) -> None:
        """A bookie stored these entries."""
        self._tracker.acknowledge(bookie_id, entry_ids)

    def adds_settled(self, lane: AddLane) -> None:
        """A chunk of answers is through."""
        lane.settle(self._tracker.reach_of(lane.bookie_id))
        if self._frames:  # Otherwise these were the last copies of entries that are confirmed already.
            self.confirm()

    def add_refused(self, bookie_id: str, entry_id: int, status: Status) -> None:
        """A fence or a wrong key ends the writer, anything else is that bookie's failure."""
        error = error_of(status, bookie_id, self.ledger_id, f"add of entry {entry_id}")
        if isinstance(error, BookieError):
            self.bookie_failed(bookie_id, error)
        else:
            self.fail(error)

    def bookie_failed(self, bookie_id: str, error: BookieError) -> None:
        """Replace the bookie, if it still belongs to the ensemble."""
        position = self._tracker.position_of(bookie_id)
        if self._failure is not None or position is None:
            return
        lane = self._lanes[position]
        if lane is not None and lane.bookie_id == bookie_id:
            self._lanes[position] = None
            lane.close()
            self._full = False
            self._changer.bookie_failed(bookie_id, error)

    def room_again(self) -> None:
        """A channel is no longer full; another one may still be, and then says so at the next sending."""
        self._full = False
        self._admit()

    def confirm(self) -> None:
        """Tell those whose entries are confirmed, then let the next ones in."""
        tracker = self._tracker
        before = tracker.last_add_confirmed
        confirmed = tracker.advance()
        if confirmed != before:
            frames, size = self._frames, 0
            for _ in range(confirmed - before):
                size += len(frames.popleft())
            self._pending_bytes -= size
            waiting = self._waiting
            while waiting and waiting[0][0] <= confirmed:
                _, future, result = waiting.popleft()
                if not future.done():
                    future.set_result(result)
            self._measure(confirmed, confirmed - before, size)
        if self._queue and self._failure is None:
            self._admit()
        self._tell_idle()

    def _measure(self, confirmed: int, entries: int, size_bytes: int) -> None:
        metrics, sent_at = self._services.metrics, self._sent_at
        metrics.added.inc(entries)
        metrics.added_bytes.inc(size_bytes)
        if sent_at and sent_at[0][0] <= confirmed:
            now = self._services.host.clock.monotonic()
            while sent_at and sent_at[0][0] <= confirmed:
                metrics.add_seconds.observe(now - sent_at.popleft()[1])

    # Ensembles (for EnsembleChanger).

    def take_ensemble(self, changed: Sequence[int]) -> None:
        """The tracker has a new ensemble: send the new bookies at these positions what is not confirmed."""
        tracker = self._tracker
        first = tracker.last_add_confirmed + 1
        frames = tuple(self._frames)
        for position in changed:
            lane = self._lanes[position]
            if lane is not None:
                lane.close()
            lane = self._lanes[position] = self._open_lane(tracker.ensemble[position])
            entry_ids = tracker.pending_of(position)
            if entry_ids and not lane.send(b"".join([frames[e - first] for e in entry_ids]), entry_ids[-1], len(entry_ids)):
                self._channel_is_full(lane)

    def _open_lane(self, bookie_id: str) -> AddLane:
        return self._services.pool.channel(bookie_id).open_lane(self.ledger_id, self)

    # The end.

    def fail(self, cause: TriplicateError) -> None:
        """End the writer: everybody who waits gets the error. The first cause stays."""
        if self._failure is None:
            self._services.host.trace("client.writer_failed", ledger=self.ledger_id, why=str(cause), pending=len(self._frames))
            self._services.metrics.add_failures.inc(len(self._frames))
            self._stop(cause)

    def _stop(self, cause: TriplicateError) -> None:
        self._failure = cause
        for position, lane in enumerate(self._lanes):
            if lane is not None:
                lane.close()
            self._lanes[position] = None
        entries = f"entries {self.last_add_confirmed + 1} to {self.last_add_pushed} of ledger {self.ledger_id}"
        unknown = f"{cause}; {entries} have an unknown outcome"
        while self._waiting:
            _, future, _ = self._waiting.popleft()
            _settle(future, self._copy(cause, unknown))
        while self._queue:
            queued = self._queue.popleft()
            _settle(queued.future, self._copy(cause, unknown if queued.next else f"{cause}; nothing of this append was sent"))
        self._out.clear()
        self._tell_idle()

    def _copy(self, cause: TriplicateError, text: str) -> TriplicateError:
        """An exception of its own for everybody who waits, since each raising adds to its traceback."""
        error = type(cause)(text)
        if isinstance(error, LedgerFenced | LedgerClosed | OutcomeUnknown | Unauthorized):
            error.ledger_id = self.ledger_id
        error.__cause__ = cause
        return error

    async def close(self, *, wait: bool = True) -> int:
        """Close the ledger at its last confirmed entry and return that entry's id (-1 when it is empty). Idempotent.

        Args:
            wait: first wait for the appends under way; otherwise they fail with LedgerClosed and are not part of the ledger.

        Raises:
            LedgerFenced: another client recovers the ledger. LedgerClosed: another client closed it elsewhere.
            OutcomeUnknown: the metadata could not be reached.
        """
        if self._closed is None:
            self._closing = True
            closed: asyncio.Future[int] = self._loop.create_future()
            task = self._services.scope.spawn(self._close_into(closed, wait), name=f"close ledger {self.ledger_id}")
            # Only now: had the client been closed before, whoever asks again must hear it again, not wait for nobody.
            self._closed = closed
            task.add_done_callback(lambda _: self._closed_at_last())
        return await asyncio.shield(self._closed)

    async def _close_into(self, result: asyncio.Future[int], wait: bool) -> None:
        """Runs in the client's scope, so that a caller who is cancelled does not leave the ledger half closed."""
        try:
            last_entry_id = await self._close(wait)
        except TriplicateError as error:
            _settle(result, error)
        else:
            result.set_result(last_entry_id)

    def _closed_at_last(self) -> None:
        assert self._closed is not None
        _settle(self._closed, HandleClosed(f"the client was closed while ledger {self.ledger_id} was being closed"))

    async def _close(self, wait: bool) -> int:
        if wait:
            while self._failure is None and (self._frames or self._queue or self._tracker.changing):
                self._idle = self._loop.create_future()
                await self._idle
        failure = self._failure
        if isinstance(failure, LedgerFenced | LedgerClosed | Unauthorized):
            raise self._copy(failure, str(failure))
        self._changer.stop()
        if failure is None:
            self._stop(LedgerClosed(f"ledger {self.ledger_id} was closed by its writer"))
        last, length = self.last_add_confirmed, self.length
        patience = Patience(self._services, self.ledger_id, f"the closing of ledger {self.ledger_id}")
        closed = await patience.swap(
            self._changer.current, lambda metadata: metadata.closed(last, length), lambda found: self._closed_by_whom(found, last)
        )
        self._changer.current = closed
        self._services.host.trace("client.ledger_closed", ledger=self.ledger_id, last=last)
        return last

    def _closed_by_whom(self, found: Versioned, last: int) -> Versioned | None:
        if found.value.state == LedgerState.IN_RECOVERY:
            raise LedgerFenced(f"ledger {self.ledger_id} is being recovered by another client, which will close it")
        if not found.value.is_closed:
            return None
        if found.value.last_entry_id == last:
            return found
        raise LedgerClosed(f"ledger {self.ledger_id} was closed at entry {found.value.last_entry_id} by another client, not at {last}")

    def abandon(self) -> None:
        """Stop without closing the ledger: for a writer that lost it, or to leave the end to recovery. Idempotent."""
        self._closing = True
        self._changer.stop()
        if self._failure is None:
            self._stop(HandleClosed(f"the writer of ledger {self.ledger_id} was abandoned; recovery decides where the ledger ends"))

    async def __aenter__(self) -> LedgerWriter:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            await self.close()
            return
        try:
            await shielded(self.close(wait=False))
        except TriplicateError as closing:
            error.add_note(f"closing ledger {self.ledger_id} failed as well: {closing}")

    # Helpers.

    def _check_usable(self) -> None:
        if self._closing:
            raise HandleClosed(f"the writer of ledger {self.ledger_id} was closed")
        if self._failure is not None:
            raise self._copy(self._failure, f"{self._failure}; nothing of this append was sent")

    def _own(self, payload: Payload) -> bytes:
        """Check that an append may begin, and make its payload unchangeable."""
        self._check_usable()
        if type(payload) is not bytes:
            if not isinstance(payload, bytes | bytearray | memoryview):
                raise ArgumentError(f"a payload is bytes, not {type(payload).__name__}")
            payload = bytes(payload)
        if len(payload) > self.largest_payload_bytes:
            raise RecordTooLarge(
                f"a record of {len(payload)} bytes exceeds the limit of {self.largest_payload_bytes} bytes "
                f"(frame_limit_bytes {self._services.settings.frame_limit_bytes}); nothing was written, split it"
            )
        return payload

    def _window_full(self) -> WindowFull:
        return WindowFull(
            f"{len(self._frames)} entries of {self._pending_bytes} bytes of ledger {self.ledger_id} are unacknowledged; "
            "await append instead, or slow down"
        )

    def _tell_idle(self) -> None:
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)


def _settle(future: asyncio.Future[Any], error: BaseException) -> None:
    """Fail a future that nobody may be waiting for any more."""
    if not future.done():
        future.set_exception(error)
        # The error is also what every later call on this writer raises, so it is not lost when nobody awaits this future.
        future.exception()
