"""The one writer of a log: numbers records, fills entries, keeps their order over segments, and stops when it is fenced.

Entries wait in `_queue` until they are sent and in `_sent` until the ledger acknowledges them, always in offset order. When a segment
breaks, its own ledger is recovered: recovery decides which of the sent entries are there, and the others are sent again in the next
segment, so an appender sees a delay and not an unknown outcome. A fenced ledger is different: somebody else took the log over.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import (
    HandleClosed,
    LedgerFenced,
    LogFenced,
    NoSuchLedger,
    NoSuchLog,
    OutcomeUnknown,
    TriplicateError,
    UsageError,
    WindowFull,
)
from triplicate.log.core.compression import Compressor
from triplicate.log.core.head import Head, LogSegment, Owner, closed_segment
from triplicate.log.core.payload import Buffer, Producer, RecordHeaders, encode_record_headers
from triplicate.log.core.payload_encoder import (
    EncodedEntry,
    checked_cost,
    columns_cut,
    columns_of,
    encode_columns,
    encode_control,
    wall_time_after,
)
from triplicate.log.core.quorums import degraded_quorums
from triplicate.log.store.ledger_ports import LedgerAppender
from triplicate.log.store.log_metrics import LogMetrics
from triplicate.log.writing.entry_builder import EntryBuilder, PendingEntry, joined, renumber
from triplicate.log.writing.segment_roller import SegmentRoller
from triplicate.log.writing.segment_transitions import SegmentTransitions
from triplicate.runtime import AdmissionWindow, TaskScope, Timer, fault_point

LOST = (LedgerFenced, NoSuchLedger, NoSuchLog)
"""What a writer meets when it has lost its log: to another writer, or to its deletion."""


class LogWriter:
    """Made by `Logs.writer`; use it with ``async with`` or `close` it.

    All methods raise `LogFenced` once another writer has taken the log over; what was not acknowledged then has an unknown outcome.
    Appends are acknowledged in order: when one is, all before it are.
    """

    def __init__(self, succession: SegmentTransitions, settings: LogClientSettings, metrics: LogMetrics, head: Head, owner: Owner) -> None:
        self.name = succession.name
        self.epoch = head.epoch
        self.owner = owner
        assert head.open is not None, "a writer is made after its take-over"
        self.start_offset = head.open.first_offset
        """Offset of the first record that this writer writes."""
        self._succession = succession
        self._settings = settings
        self._metrics = metrics
        self._host = succession.client.host
        self._log = head.settings
        self._segment = head.open
        self._ledger: LedgerAppender | None = None
        self._compressor = Compressor(head.settings.compression)
        self._window = AdmissionWindow(settings.window_entries, settings.window_bytes)
        self._queue: deque[PendingEntry] = deque()
        self._sent: deque[PendingEntry] = deque()
        self._batch: EntryBuilder | None = None
        self._next_offset = self.start_offset
        self._acknowledged = self.start_offset
        self._wall_time_us = head.last_time_us
        self._segment_bytes = 0
        self._segment_entries = 0
        self._segment_min_time_us = 0
        self._rolling = False
        self._closing = False
        self._failure: BaseException | None = None
        # Entry ids in this segment: the last one acknowledged, the last one worth reading, and the last one that readers may read
        # because an entry sent after its acknowledgement says so.
        self._acknowledged_entry = self._worth_reading = self._readable = -1
        self._flush_timer: Timer | None = None
        self._noop_timer: Timer | None = None
        self._drained: list[asyncio.Future[None]] = []
        self._scope = TaskScope(f"log {self.name}", on_failure=self._fail)
        self._rolls = SegmentRoller(succession, settings, metrics, head, self._scope, self)
        self.rolls = 0
        """How many segments this writer has opened after its first."""
        self.repairs = 0
        """How many of them because the one before broke."""
        self.admitted = 0
        """How many records of publishers were listed at its rolls: they lie between the records of this writer."""

    # What it knows.

    @property
    def next_offset(self) -> int:
        """Offset of the next record to be accepted, unless publishers' records come before it."""
        return self._next_offset + (len(self._batch) if self._batch is not None else 0)

    @property
    def acknowledged_offset(self) -> int:
        """Offset after the last acknowledged record."""
        return self._acknowledged

    @property
    def ledger_id(self) -> int:
        """The open segment's ledger."""
        return self._segment.ledger_id

    @property
    def is_reduced(self) -> bool:
        """Whether the open segment has fewer copies than the log asks for, because bookies are short."""
        return self._segment.reduced is not None

    @property
    def failure(self) -> BaseException | None:
        """Why it stopped, or None while it works."""
        return self._failure

    # Appending.

    async def append(
        self, value: Buffer | None, *, key: Buffer | None = None, timestamp_us: int | None = None, headers: RecordHeaders | None = None
    ) -> int:
        """Append one record; records that are appended at about the same time share an entry. Returns its offset once acknowledged.

        Cancelling the wait does not take back a record already numbered.

        Raises:
            RecordTooLarge: over 4 MiB with its key and headers; nothing was sent. LogFenced, HandleClosed: see the class.
        """
        encoded_headers = None if headers is None else encode_record_headers(headers)
        cost = checked_cost(value, key, encoded_headers)
        self._check()
        await self._window.admit(0, cost)
        try:
            self._check()
            if self._batch is not None and self._batch.size_bytes + cost > self._settings.entry_target_bytes:
                self._flush()
                self._check()  # The ledger may have refused what was flushed.
        except BaseException:
            self._window.release(0, cost)
            raise
        if self._batch is None:
            self._batch = EntryBuilder()
        batch = self._batch
        slot = batch.add(value, key, timestamp_us, encoded_headers, cost)
        if batch.size_bytes >= self._settings.entry_target_bytes:
            self._flush()
        elif self._flush_timer is None:
            self._flush_timer = self._timer(self._settings.linger_s if self._sent or self._queue else 0.0, self._flush_due)
        offsets = await asyncio.shield(batch.future)
        return offsets[slot]

    async def append_many(
        self,
        values: Sequence[Buffer | None],
        *,
        keys: Sequence[Buffer | None] | None = None,
        timestamps_us: Sequence[int] | None = None,
        headers: Sequence[RecordHeaders] | None = None,
    ) -> Sequence[int]:
        """Append records in order, in as many entries as they need. Returns their offsets once all are acknowledged.

        They are a range unless others append to this writer, or publish to its log, at the same time: then others' records lie between.
        Raises as `append`; then a beginning of them may have been appended. ArgumentError: lists of different lengths.
        """
        entries = columns_cut(values, keys, timestamps_us, headers, self._settings.entry_target_bytes)
        futures = [await self._send(encode_columns(columns, self._compressor)) for columns in entries]
        return joined([await future for future in futures])

    async def append_entry(
        self,
        values: Sequence[Buffer | None],
        *,
        preamble: Buffer | None = None,
        keys: Sequence[Buffer | None] | None = None,
        timestamps_us: Sequence[int] | None = None,
        headers: Sequence[RecordHeaders] | None = None,
        transaction_ids: Sequence[int] | None = None,
        producer: Producer | None = None,
    ) -> range:
        """Append records as exactly one entry of the ledger; waits for room. Returns their offsets once acknowledged.

        Raises:
            RecordTooLarge: they exceed 4 MiB encoded; nothing was sent. ArgumentError: no values, or columns of different lengths.
        """
        columns = columns_of(values, keys=keys, timestamps_us=timestamps_us, headers=headers, transaction_ids=transaction_ids)
        return await (await self._send(encode_columns(columns, self._compressor, preamble=preamble, producer=producer)))

    def append_entry_nowait(
        self,
        values: Sequence[Buffer | None],
        *,
        preamble: Buffer | None = None,
        keys: Sequence[Buffer | None] | None = None,
        timestamps_us: Sequence[int] | None = None,
        headers: Sequence[RecordHeaders] | None = None,
        transaction_ids: Sequence[int] | None = None,
        producer: Producer | None = None,
    ) -> asyncio.Future[range]:
        """As `append_entry`, without waiting: the future becomes the offsets.

        Raises:
            WindowFull: too much is unacknowledged; nothing was sent.
        """
        self._check()
        columns = columns_of(values, keys=keys, timestamps_us=timestamps_us, headers=headers, transaction_ids=transaction_ids)
        encoded = encode_columns(columns, self._compressor, preamble=preamble, producer=producer)
        if not self._window.try_admit(1, encoded.size_bytes):
            raise WindowFull(f"log {self.name!r}: the window of unacknowledged entries is full; await append_entry instead")
        return self._enqueue(encoded, matters=True)

    async def noop(self) -> None:
        """Append a control record that carries nothing and wait for it: proof that this writer was not fenced when it was acknowledged,
        and whatever was acknowledged before is readable."""
        await self.control("noop")

    async def control(self, kind: str, fields: Mapping[str, Any] | None = None) -> None:
        """Append a control record of an entry of its own and wait for it; it has no offset.

        Args:
            kind: `noop` or `abort`.
            fields: JSON, beside `kind`.
        """
        await (await self._send(encode_control(kind, fields or {}), matters=kind != "noop"))

    async def _send(self, encoded: EncodedEntry, *, matters: bool = True) -> asyncio.Future[range]:
        self._check()
        await self._window.admit(1, encoded.size_bytes)
        try:
            self._check()
        except BaseException:
            self._window.release(1, encoded.size_bytes)
            raise
        return self._enqueue(encoded, matters=matters)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closing:
            raise HandleClosed(f"the writer of log {self.name!r} is closed")

    def _enqueue(self, encoded: EncodedEntry, *, matters: bool) -> asyncio.Future[range]:
        """Put an entry, for which there is room, behind the records that wait for theirs."""
        self._flush()
        if self._failure is not None:
            self._window.release(1, encoded.size_bytes)
            raise self._failure  # The ledger has refused what was flushed.
        future: asyncio.Future[range] = asyncio.get_running_loop().create_future()
        self._queue.append(PendingEntry(encoded, self._next_offset, future, encoded.size_bytes, matters))
        self._next_offset += encoded.count
        self._pump()
        return future

    def _flush_due(self) -> None:
        self._flush_timer = None
        self._flush()

    def _flush(self) -> None:
        """Make an entry of the records that wait for one."""
        self._flush_timer = _cancel(self._flush_timer)
        batch, self._batch = self._batch, None
        if batch is None or self._failure is not None:
            return
        encoded = batch.encode(self._compressor, self._host.clock.wall_us())
        self._window.add_entry()
        self._queue.append(PendingEntry(encoded, self._next_offset, batch.future, batch.size_bytes))
        self._next_offset += encoded.count
        self._pump()

    # Sending and acknowledging.

    def _pump(self) -> None:
        """Send what waits, as long as the ledger takes it."""
        while self._queue and self._ledger is not None and not self._rolling and self._failure is None:
            if self._segment_bytes >= self._rolls.look_bytes and self._rolls.consider():
                return
            item = self._queue[0]
            wall_time_us = wall_time_after(self._wall_time_us, self._host.clock.wall_us())
            payload = item.encoded.payload(item.first_offset - self._segment.first_offset, wall_time_us)
            try:
                acknowledged = self._ledger.append_nowait(payload)
            except WindowFull as error:
                if not self._sent:
                    self._fail(error)  # Nothing will ever make room: the client's window is smaller than one entry.
                return
            except TriplicateError as error:
                self._on_error(error)
                return
            self._queue.popleft()
            item.entry_id = self._segment_entries
            self._readable = self._acknowledged_entry
            self._sent.append(item)
            self._wall_time_us = wall_time_us
            self._segment_entries += 1
            self._segment_bytes += len(payload)
            acknowledged.add_done_callback(partial(self._on_answer, self._ledger, item))
        if self._segment_bytes >= self._rolls.look_bytes:
            self._rolls.consider()

    def _on_answer(self, ledger: LedgerAppender, item: PendingEntry, answer: asyncio.Future[int]) -> None:
        error = OutcomeUnknown("the append was cancelled") if answer.cancelled() else answer.exception()
        if ledger is not self._ledger or self._failure is not None:
            return  # The ledger was given up; its recovery has decided about this entry, or nobody will.
        if error is not None:
            self._on_error(error)
            return
        assert self._sent[0] is item, "a ledger acknowledges in order"
        assert answer.result() == item.entry_id, "a ledger has one writer"
        self._sent.popleft()
        self._acknowledge(item)
        if self._rolling and not self._sent:
            self._spawn_advance(broken=False)
        self._pump()
        self._look_idle()

    def _acknowledge(self, item: PendingEntry) -> None:
        self._acknowledged = item.first_offset + item.encoded.count
        self._acknowledged_entry = item.entry_id
        if item.matters:
            self._worth_reading = item.entry_id
        self._metrics.appended.inc(item.encoded.count)
        self._metrics.entries.inc()
        self._metrics.bytes.inc(item.encoded.size_bytes)
        item.settle()
        self._window.release(1, item.room_bytes)

    def _look_idle(self) -> None:
        if self._sent or self._queue:
            return
        if self._batch is not None:
            self._flush()
            return
        for waiter in self._drained:
            if not waiter.done():
                waiter.set_result(None)
        self._drained.clear()
        if self._worth_reading > self._readable and self._noop_timer is None and not self._closing:
            self._noop_timer = self._timer(self._settings.idle_noop_delay_s, self._noop_due)

    def _noop_due(self) -> None:
        """The last record becomes readable with the entry behind it; if nobody writes one, a no-op does it, once."""
        self._noop_timer = None
        if self._worth_reading <= self._readable or self._sent or self._queue or self._batch or self._failure is not None or self._closing:
            return
        self._window.add_entry()
        self._queue.append(PendingEntry(encode_control("noop", {}), self._next_offset, None, 0, matters=False))
        self._pump()

    def _on_error(self, error: BaseException) -> None:
        if isinstance(error, LOST):
            self._fail(self._fenced(error))
        elif isinstance(error, UsageError):
            self._fail(error)  # Trying again would end in the same way.
        elif self._failure is None and self._ledger is not None:
            self._host.trace("log.segment_broken", log=self.name, ledger=self._segment.ledger_id, error=repr(error))
            self._rolling = True
            self._spawn_advance(broken=True)

    def _fenced(self, cause: BaseException) -> LogFenced:
        error = LogFenced(f"log {self.name!r} was taken over or deleted under its writer {self.owner.name!r} (epoch {self.epoch})")
        error.__cause__ = cause
        return error

    # Rolling.

    @property
    def can_roll(self) -> bool:
        """Whether it has a segment that takes entries, and is not about to end. This and the next ones are for `SegmentRoller`."""
        return not (self._rolling or self._closing or self._failure is not None or self._ledger is None)

    @property
    def segment_bytes(self) -> int:
        """Bytes sent to the open segment."""
        return self._segment_bytes

    @property
    def has_records(self) -> bool:
        """Whether the open segment holds records, or is about to."""
        return bool(self._acknowledged > self._segment.first_offset or self._sent or self._queue)

    def begin_roll(self) -> None:
        """Close the open segment and go on in the next one as soon as what was sent is acknowledged."""
        self._rolling = True
        if not self._sent:
            self._spawn_advance(broken=False)

    def go_on(self) -> None:
        """Send what waits."""
        self._pump()

    def lost(self, error: TriplicateError) -> None:
        """Somebody else has the log, or it is gone."""
        self._fail(self._fenced(error))

    def _spawn_advance(self, *, broken: bool) -> None:
        ledger, self._ledger = self._ledger, None
        self.repairs += broken
        self._metrics.repairs.inc(broken)
        assert ledger is not None, "only a writer with a segment rolls"
        self._scope.spawn(self._advance(ledger, broken), name="advance")

    async def _advance(self, ledger: LedgerAppender, broken: bool) -> None:
        """Close this segment and open the next; from the first error on, by recovery."""
        try:
            await self._succession.retry(partial(self._advance_once, ledger), broken=broken)
        except TriplicateError as error:
            self._fail(self._fenced(error) if isinstance(error, LOST) else error)
            return
        self.rolls += 1
        self._metrics.rolls.inc()
        self._rolling = False
        self._pump()
        self._look_idle()
        await self._succession.tidy()

    async def _advance_once(self, ledger: LedgerAppender, broken: bool) -> None:
        await self._succession.have_next()
        closed = await self._close_segment(ledger, broken)
        opened, segment = await self._succession.next_segment(closed, self.epoch, self.owner)
        self._adopt(segment)
        await self._begin(opened)

    async def _leave_once(self, ledger: LedgerAppender, broken: bool) -> None:
        await self._succession.leave(await self._close_segment(ledger, broken), self.epoch, self.owner)
        await self._succession.drop_next()

    async def _close_segment(self, ledger: LedgerAppender, broken: bool) -> LogSegment:
        if not broken:
            closed = self._closed(await ledger.close())
            has_gaps = ledger.has_missed_bookies and closed.reduced is None
            return replace(closed, reduced=degraded_quorums(self._log)) if has_gaps else closed
        ledger.abandon()
        closed = await self._succession.recover(self._segment)
        self._recovered(closed)
        return closed

    def _closed(self, last_entry: int) -> LogSegment:
        assert last_entry == self._segment_entries - 1, "a ledger holds what was appended to it"
        return closed_segment(
            self._segment,
            records=self._acknowledged - self._segment.first_offset,
            size_bytes=self._segment_bytes,
            last_entry=last_entry,
            min_time_us=self._segment_min_time_us,
            max_time_us=self._wall_time_us,
        )

    def _recovered(self, closed: LogSegment) -> None:
        """Recovery has decided: what it found is acknowledged, what it did not is sent again."""
        while self._sent and self._sent[0].entry_id <= closed.last_entry:
            self._acknowledge(self._sent.popleft())
        self._queue.extendleft(reversed(self._sent))
        self._sent.clear()
        assert self._acknowledged == closed.end_offset, "recovery keeps what was acknowledged, and nothing nobody sent"

    def _adopt(self, segment: LogSegment) -> None:
        # What publishers asked for is listed in between: everything that waits comes after it.
        self.admitted += segment.first_offset - self._acknowledged
        self._acknowledged = segment.first_offset
        self._next_offset = renumber(self._queue, segment.first_offset)
        self._segment = segment
        self._segment_bytes = self._segment_entries = 0
        self._acknowledged_entry = self._worth_reading = self._readable = -1

    async def start(self, ledger: LedgerAppender) -> None:
        """Begin the first segment, and clear away what take-overs left. Called by `Logs.writer`, once."""
        try:
            await self._begin(ledger)
        except LOST as error:
            raise self._fenced(error) from error
        self._scope.spawn(self._succession.keep_ownership(self.owner), name="owner")
        self._scope.spawn(self._succession.follow_requests(self._rolls.roll), name="requests")
        await self._succession.tidy()

    @fault_point("log.segment_header")
    async def _begin(self, ledger: LedgerAppender) -> None:
        """Write the header of a segment and wait for it: nobody reads a record of a segment whose writer was fenced before it began."""
        self._wall_time_us = wall_time_after(self._wall_time_us, self._host.clock.wall_us())
        self._segment_min_time_us = self._wall_time_us
        fields = {
            "epoch": self.epoch,
            "first_offset": self._segment.first_offset,
            "writer": self.owner.name,
            "log": self._succession.log_id,
        }
        payload = encode_control("segment", fields).payload(0, self._wall_time_us)
        await self._succession.begin(ledger, payload)
        self._acknowledged_entry = 0
        self._segment_entries = 1
        self._segment_bytes = len(payload)
        self._ledger = ledger
        self._rolls.begin(reduced=self.is_reduced)

    # The end.

    async def close(self) -> None:
        """Wait until everything is acknowledged, close the segment and give the log up. Idempotent.

        Raises:
            LogFenced, OutcomeUnknown: something could not be acknowledged, or the segment not be closed; the writer is closed nevertheless.
            NoSuchLedger: what was acknowledged is lost with its ledger.
        """
        if self._failure is not None:
            await self.abandon()
        if self._closing:
            return
        self._flush()
        self._closing = True
        try:
            while self._sent or self._queue or self._rolling:
                await self._wait_drained()
            ledger, self._ledger = self._ledger, None
            assert ledger is not None, "a writer that neither rolls nor failed has a segment"
            try:
                await self._succession.retry(partial(self._leave_once, ledger), broken=False)
            except (LogFenced, *LOST) as error:
                self._fail(self._fenced(error))  # Another writer, or a deletion, keeps to what was acknowledged.
                await self._succession.raise_lost(self._segment, error)
        finally:
            await self.abandon()

    async def abandon(self) -> None:
        """Stop at once without closing the segment, as after an unknown outcome: the next take-over decides what it holds. Idempotent."""
        self._closing = True
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            ledger.abandon()
        if self._failure is None and (self._sent or self._queue or self._batch):
            self._fail(OutcomeUnknown(f"the writer of log {self.name!r} was abandoned with entries on their way"))
        self._stop_timers()
        await self._scope.aclose()
        await self._succession.drop_next()
        await self._succession.release(self.owner)

    async def __aenter__(self) -> LogWriter:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            await self.close()
        else:
            await self.abandon()

    async def _wait_drained(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._drained.append(waiter)
        await waiter

    def _fail(self, error: BaseException) -> None:
        """Stop for good: everything on its way gets the error."""
        if self._failure is not None:
            return
        self._failure = error
        if isinstance(error, LogFenced):
            self._metrics.fenced.inc()
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            ledger.abandon()
        self._host.trace("log.writer_failed", log=self.name, epoch=self.epoch, error=repr(error))
        self._stop_timers()
        items = [*self._sent, *self._queue]
        self._sent.clear()
        self._queue.clear()
        if self._batch is not None:
            items.append(PendingEntry(encode_control("noop", {}), self._next_offset, self._batch.future, 0))
            self._batch = None
        for item in items:
            item.fail(error)
        self._window.fail(error)
        for waiter in self._drained:
            if not waiter.done():
                waiter.set_exception(error)
                waiter.exception()
        self._drained.clear()

    def _timer(self, seconds: float, call: Callable[[], None]) -> Timer:
        return self._host.clock.call_at(self._host.clock.monotonic() + seconds, call)

    def _stop_timers(self) -> None:
        self._flush_timer = _cancel(self._flush_timer)
        self._noop_timer = _cancel(self._noop_timer)
        self._rolls.end()


def _cancel(timer: Timer | None) -> Timer | None:
    """Cancel a timer and return None, to put in its place."""
    if timer is not None:
        timer.cancel()
    return None
