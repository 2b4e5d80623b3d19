"""The one writer of a log: it encodes entries, sends them to the open segment's ledger, and ends when it is fenced.

`core.writer_machine` decides; this shell carries out its commands on the ledger, the window, the timers and the metadata. When a segment
breaks, its own ledger is recovered and the entries that recovery did not find are sent again in the next segment, so an appender sees a
delay and not an unknown outcome. A fenced ledger is different: another writer has taken the log over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import HandleClosed, LogFenced, OutcomeUnknown, TriplicateError, WindowFull
from triplicate.log.core.compression import Compressor
from triplicate.log.core.encrypted_entries import encrypt_entry
from triplicate.log.core.encryption import LedgerEncryptor
from triplicate.log.core.head import Head, LogSegment, Owner
from triplicate.log.core.payload import Buffer, RecordHeaders, encode_record_headers
from triplicate.log.core.payload_encoder import (
    NOOP,
    EncodedEntry,
    check_timestamp,
    checked_cost,
    columns_cut,
    columns_of,
    encode_columns,
    encode_control,
)
from triplicate.log.core.writer_machine import (
    LOST,
    Abandoned,
    AbandonLedger,
    CheckRoll,
    CloseRequested,
    Event,
    LeaveBegun,
    LedgerFailed,
    LogLost,
    PendingEntry,
    Phase,
    ReportIdle,
    ResolveEntry,
    RollChecked,
    SegmentListed,
    SegmentOpened,
    SegmentRecovered,
    SendDeferred,
    SendEntry,
    StopWriter,
    SwitchSegment,
    WriterFailed,
    WriterMachine,
)
from triplicate.log.store.ledger_ports import LedgerAppender
from triplicate.log.store.log_metrics import LogMetrics
from triplicate.log.writing.entry_builder import EntryBuilder, Producers, joined
from triplicate.log.writing.idle_noop_timer import IdleNoopTimer
from triplicate.log.writing.log_producer import Appended, LogProducer, NumberedRecord, repeated_append
from triplicate.log.writing.segment_roller import SegmentRoller, WriterSide
from triplicate.log.writing.segment_transitions import SegmentTransitions
from triplicate.log.writing.writer_state import Waiter, WriterState
from triplicate.runtime import AdmissionWindow, TaskScope, Timer, fail


class LogWriter(WriterState):
    """Made by `Logs.writer`; use it with ``async with`` or `close` it.

    All methods raise `LogFenced` once another writer has taken the log over; records not acknowledged by then have an unknown outcome.
    Appends are acknowledged in order: when one is, all before it are.
    """

    def __init__(
        self,
        transitions: SegmentTransitions,
        settings: LogClientSettings,
        metrics: LogMetrics,
        head: Head,
        owner: Owner,
        machine: WriterMachine[Waiter],
        ledger: LedgerAppender,
    ) -> None:
        self.name = transitions.name
        self.epoch = head.epoch
        self.owner = owner
        self.start_offset = machine.next_offset
        """Offset of the first record that this writer writes."""
        super().__init__(machine, transitions.publish_source)
        self._transitions = transitions
        self._clock = transitions.client.host.clock
        self._settings = settings
        self._metrics = metrics
        self._ledger = ledger
        """The open segment's ledger; while segments are switched, the ledger that was used last."""
        self._compressor = Compressor(head.settings.compression)
        self._encryptor: LedgerEncryptor | None = None
        self._window = AdmissionWindow(settings.window_entries, settings.window_bytes)
        self._flush_timer: Timer | None = None
        self.idle_noop = IdleNoopTimer(self._clock, settings.idle_noop_delay_s, self._append_idle_noop)
        self._idle = asyncio.Event()
        """Set when a closing writer has nothing pending, and at the end; `close` waits for it."""
        self._scope = TaskScope(f"log {self.name}", on_failure=lambda error: self._step(WriterFailed(error)))
        self._roller = SegmentRoller(transitions, settings, metrics, head, self._scope, WriterSide(machine, self._step))

    @classmethod
    async def open(
        cls,
        transitions: SegmentTransitions,
        settings: LogClientSettings,
        metrics: LogMetrics,
        head: Head,
        owner: Owner,
        ledger: LedgerAppender,
    ) -> LogWriter:
        """Write the header of the first segment, then delete what take-overs left behind.

        Args:
            ledger: of the head's open segment, listed and empty.

        Raises:
            LogFenced: another writer has taken the log over.
        """
        assert head.open is not None, "a writer is made after its take-over"
        machine: WriterMachine[Waiter] = WriterMachine(transitions.name, owner.name, head.epoch, head.open, head.last_time_us)
        writer = cls(transitions, settings, metrics, head, owner, machine, ledger)
        try:
            await writer._open_segment()
            writer._scope.spawn(transitions.renew_ownership(owner), name="owner")
            writer._scope.spawn(transitions.publish_source.follow(writer._roller.roll), name="requests")
            await transitions.tidy()
        except LOST as error:
            await writer.abandon()
            raise machine.lost(error) from error
        except BaseException:
            await writer.abandon()
            raise
        return writer

    # Appending.

    async def append(
        self, value: Buffer | None, *, key: Buffer | None = None, timestamp_us: int | None = None, headers: RecordHeaders | None = None
    ) -> int:
        """Append one record; records that are appended at about the same time share an entry. Returns its offset once acknowledged.

        Cancelling the wait does not take back a record already numbered.

        Raises:
            RecordTooLarge: over 4 MiB with its key and headers; nothing was sent. ArgumentError: value or key are no bytes, or the
            timestamp has not 64 bits; nothing was sent. LogFenced, HandleClosed: see the class.
        """
        encoded_headers = None if headers is None else encode_record_headers(headers)
        cost = checked_cost(value, key, encoded_headers)
        if timestamp_us is not None:
            check_timestamp(timestamp_us)
        self._check_usable()
        await self._window.admit(0, cost)
        try:
            self._check_usable()
            waiting = self._builder
            if waiting is not None and waiting.size_bytes + cost > waiting.limit_bytes:
                self._flush()
                self._check_usable()  # The ledger may have refused the entry.
        except BaseException:
            self._window.release(0, cost)
            raise
        if self._builder is None:
            self._builder = EntryBuilder(self._settings.entry_target_bytes)
        builder = self._builder
        slot = builder.add(value, key, timestamp_us, encoded_headers, cost)
        if builder.size_bytes >= self._settings.entry_target_bytes:
            self._flush()
        elif self._flush_timer is None:
            self._flush_later()
        offsets = await asyncio.shield(builder.future)
        return offsets[slot]

    async def producer(self, name: str, *, epoch: int = 0) -> LogProducer:
        """A producer, which names its records by sequence numbers: one that is appended again is there once.

        Args:
            name: of the producer, the same for all its lives.
            epoch: raise it so that an older instance of the producer, which may still be alive, cannot append with this writer any more.
                Later writers know the epoch from this instance's first record on.

        Raises:
            LogFenced, HandleClosed: see the class. ProducerFenced: there is a newer instance. ArgumentError: no valid name or epoch.
        """
        self._check_usable()
        producer = LogProducer(self, name, epoch)
        await self._transitions.keep_producers(self.epoch, self.owner)
        return producer.open()

    @property
    def producers(self) -> Producers:
        """The producers that the log knows."""
        return self._transitions.producers

    async def append_numbered(self, record: NumberedRecord) -> Appended:
        """As `append`, for `LogProducer`: a record that the log has is not appended again.

        Raises:
            SequenceGap, ProducerFenced, TooManyProducers: nothing was appended.
        """
        cost = record.cost
        self._check_usable()
        await self._window.admit(0, cost)
        try:
            self._check_usable()
            waiting, now_us = self._builder, self._machine.next_wall_time_us(self._clock.wall_us())
            sequence, repeated = record.check(self.producers, now_us)
            if repeated is None and waiting is not None and not record.fits(waiting, self._settings.entry_target_bytes):
                self._flush()
                self._check_usable()
        except BaseException:
            self._window.release(0, cost)
            raise
        if repeated is not None:
            self._window.release(0, cost)
            return await repeated_append(repeated)
        if self._builder is None:
            self._builder = record.new_builder(sequence)
        builder = self._builder
        slot = record.add_to(builder, self.producers, sequence, now_us)
        if builder.size_bytes >= self._settings.entry_target_bytes:
            self._flush()
        elif self._flush_timer is None:
            self._flush_later()
        offsets = await asyncio.shield(builder.future)
        return Appended(sequence, offsets[slot])

    def _flush_later(self) -> None:
        """Flush after the linger time, or in the next turn of the loop if nothing is outstanding."""
        linger_s = 0.0 if self._machine.is_idle else self._settings.linger_s
        self._flush_timer = self._clock.call_at(self._clock.monotonic() + linger_s, self._flush)

    async def append_many(
        self,
        values: Sequence[Buffer | None],
        *,
        keys: Sequence[Buffer | None] | None = None,
        timestamps_us: Sequence[int] | None = None,
        headers: Sequence[RecordHeaders] | None = None,
    ) -> Sequence[int]:
        """Append records in order, in as many entries as they need. Returns their offsets once all are acknowledged.

        The offsets are a range unless others append to this writer, or publish to its log, at the same time: then others' records lie
        between.

        Raises:
            As `append`; then a beginning of the records may have been appended. ArgumentError: lists of different lengths.
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
    ) -> range:
        """Append records as exactly one entry of the ledger; waits for room. Returns their offsets once acknowledged.

        Raises:
            RecordTooLarge: they exceed 4 MiB encoded; nothing was sent. ArgumentError: no values, or columns of different lengths.
        """
        columns = columns_of(values, keys=keys, timestamps_us=timestamps_us, headers=headers, transaction_ids=transaction_ids)
        encoded = encode_columns(columns, self._compressor, preamble=preamble)
        return await (self._try_send(encoded) or await self._send(encoded))

    def append_entry_nowait(
        self,
        values: Sequence[Buffer | None],
        *,
        preamble: Buffer | None = None,
        keys: Sequence[Buffer | None] | None = None,
        timestamps_us: Sequence[int] | None = None,
        headers: Sequence[RecordHeaders] | None = None,
        transaction_ids: Sequence[int] | None = None,
    ) -> asyncio.Future[range]:
        """As `append_entry`, without waiting for room: the future becomes the offsets.

        Raises:
            WindowFull: too much is unacknowledged; nothing was sent.
        """
        self._check_usable()
        columns = columns_of(values, keys=keys, timestamps_us=timestamps_us, headers=headers, transaction_ids=transaction_ids)
        future = self._try_send(encode_columns(columns, self._compressor, preamble=preamble))
        if future is None:
            raise WindowFull(f"log {self.name!r}: the window of unacknowledged entries is full; await append_entry instead")
        return future

    async def noop(self) -> None:
        """Append a control record that carries nothing and wait for it.

        Its acknowledgement proves that this writer was not fenced by then, and makes all records acknowledged before it readable.
        """
        await (await self._send(NOOP, has_readers=False))

    def make_readable(self) -> None:
        """Make the records that were acknowledged readable now, where the no-op behind them would wait for the next entry."""
        self.idle_noop.hurry()

    async def control(self, kind: str, fields: Mapping[str, Any] | None = None) -> None:
        """Append a control record as an entry of its own and wait for it; it has no offset.

        Args:
            kind: `noop` or `abort`.
            fields: JSON, beside `kind`.
        """
        await (await self._send(encode_control(kind, fields or {}), has_readers=kind != "noop"))

    def _try_send(self, encoded: EncodedEntry) -> asyncio.Future[range] | None:
        """Queue an entry if there is room for it now; None where there is not."""
        self._check_usable()
        return self._enqueue(encoded, encoded.size_bytes, has_readers=True) if self._window.try_admit(1, encoded.size_bytes) else None

    async def _send(self, encoded: EncodedEntry, *, has_readers: bool = True) -> asyncio.Future[range]:
        self._check_usable()
        size_bytes = encoded.size_bytes
        if not self._window.try_admit(1, size_bytes):
            await self._window.admit(1, size_bytes)
            try:
                self._check_usable()
            except BaseException:
                self._window.release(1, size_bytes)
                raise
        return self._enqueue(encoded, size_bytes, has_readers=has_readers)

    def _check_usable(self) -> None:
        if not self._machine.can_accept:
            raise self._machine.failure or HandleClosed(f"the writer of log {self.name!r} is closed")

    def _enqueue(self, encoded: EncodedEntry, size_bytes: int, *, has_readers: bool) -> asyncio.Future[range]:
        """Queue an entry of `size_bytes`, which has room, behind the records that wait for theirs."""
        if self._builder is not None:
            self._flush()
            failure = self._machine.failure
            if failure is not None:
                self._window.release(1, size_bytes)
                raise failure  # The ledger has refused the records before.
        now = self._clock.monotonic()
        if has_readers:
            self.idle_noop.appended(now)
        future: asyncio.Future[range] = asyncio.get_running_loop().create_future()
        self._machine.enqueue(PendingEntry(encoded, future, size_bytes, has_readers, queued_at=now))
        self._perform()
        return future

    def _flush(self) -> None:
        """Make an entry of the records that wait for one."""
        self._flush_timer = _cancel(self._flush_timer)
        builder, self._builder = self._builder, None
        if builder is None:
            return
        try:
            encoded = builder.encode(self._compressor, self._clock.wall_us())
        except Exception as error:  # noqa: BLE001 -- it is raised to those who wait for the entry
            self._refuse(builder, error)
            return
        self._window.occupy(1, 0)
        self._machine.enqueue(PendingEntry(encoded, builder.future, builder.size_bytes, queued_at=self._clock.monotonic()))
        self._perform()

    def _refuse(self, builder: EntryBuilder, error: Exception) -> None:
        """Give up records of which no entry can be made, such as a memoryview that was released meanwhile. Nothing of them was sent."""
        fail(builder.future, error)
        self._window.release(0, builder.size_bytes)
        if builder.producer is not None:
            self._step(WriterFailed(error))  # Their numbers are taken. The next writer knows them as free.

    # The commands of the machine.

    def _step(self, event: Event) -> None:
        self._machine.step(event)
        self._perform()

    def _perform(self) -> None:
        """Carry out the machine's commands in order. Sending an entry steps the machine again, which may add commands."""
        commands = self._machine.commands
        while commands:
            match command := commands.popleft():
                case SendEntry():
                    self._send_entry(command.entry, command.first_index)
                case ResolveEntry():
                    self._resolve(command.entry)
                case ReportIdle():
                    self._on_idle()
                case CheckRoll():
                    if not self._roller.consider():
                        self._machine.step(RollChecked())
                case SwitchSegment():
                    self._begin_switch(command.cause)
                case AbandonLedger():
                    self._ledger.abandon()
                case StopWriter():
                    self._stop(command)

    def _send_entry(self, entry: PendingEntry[Waiter], first_index: int) -> None:
        machine, ledger = self._machine, self._ledger
        wall_time_us = machine.next_wall_time_us(self._clock.wall_us())
        encoded, encryptor = entry.encoded, self._encryptor
        if encryptor is None:
            payload = encoded.payload(first_index, wall_time_us)
        else:
            payload = encrypt_entry(encryptor, encoded, first_index, entry.first_offset, wall_time_us)
        try:
            acknowledged = ledger.append_nowait(payload)
        except WindowFull as error:
            machine.step(SendDeferred(error))
        except TriplicateError as error:
            machine.step(LedgerFailed(ledger.ledger_id, error))
        else:
            machine.count_sent(len(payload), wall_time_us)
            acknowledged.add_done_callback(partial(self._on_answer, ledger.ledger_id))

    def _on_answer(self, ledger_id: int, answer: asyncio.Future[int]) -> None:
        error = OutcomeUnknown("the append was cancelled") if answer.cancelled() else answer.exception()
        try:
            if error is not None:
                self._machine.step(LedgerFailed(ledger_id, error))
            else:
                self._machine.acknowledge(ledger_id, answer.result())
            self._perform()
        except BaseException as broken:
            self._step(WriterFailed(broken))  # An invariant does not hold: appenders must not wait for ever.
            raise

    def _resolve(self, entry: PendingEntry[Waiter]) -> None:
        metrics, encoded = self._metrics, entry.encoded
        metrics.appended.inc(encoded.count)
        metrics.entries.inc()
        metrics.bytes.inc(encoded.size_bytes)
        if encoded.producer is not None:
            self.producers.acknowledge(encoded.producer, encoded.count, entry.first_offset, self._machine.wall_time_us)
        waiter = entry.waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(entry.offsets)
        self._window.release(1, entry.room_bytes)

    def _on_idle(self) -> None:
        if self._builder is not None:
            self._flush()
            return
        if self._machine.is_closing:
            self._idle.set()
        elif self._machine.has_unreadable:
            self.idle_noop.schedule()

    def _append_idle_noop(self) -> None:
        """Append a no-op once: an entry behind the last record makes that record readable."""
        if self._machine.has_unreadable and self._builder is None:
            self._window.occupy(1, 0)
            self._machine.enqueue(PendingEntry(NOOP, None, 0, has_readers=False, queued_at=self._clock.monotonic()))
            self._perform()

    def _stop(self, command: StopWriter[Waiter]) -> None:
        error = command.error
        self._metrics.fenced.inc(isinstance(error, LogFenced))
        self._transitions.client.host.trace("log.writer_failed", log=self.name, epoch=self.epoch, error=repr(error))
        self._stop_timers()
        self._transitions.publish_source.end(error)
        for entry in command.entries:
            if entry.waiter is not None:
                fail(entry.waiter, error)
        builder, self._builder = self._builder, None
        if builder is not None:
            fail(builder.future, error)
        self._window.fail(error)
        self._idle.set()

    # Segments.

    def _begin_switch(self, cause: BaseException | None) -> None:
        if cause is not None:
            self._metrics.repairs.inc()
            self._transitions.client.host.trace("log.segment_broken", log=self.name, ledger=self.ledger_id, error=repr(cause))
        self._scope.spawn(self._switch_segment(broken=cause is not None), name="advance")

    async def _switch_segment(self, *, broken: bool) -> None:
        """Close the segment and open the next; from the first error on, by recovery."""
        try:
            await self._transitions.retry(self._switch_once, broken=broken)
        except TriplicateError as error:
            self._step(LogLost(error) if isinstance(error, LOST) else WriterFailed(error))
            return
        self._metrics.rolls.inc()
        await self._transitions.tidy()

    async def _switch_once(self, broken: bool) -> None:
        await self._transitions.ensure_next()
        closed = await self._close_segment(broken)
        self._ledger, segment = await self._transitions.next_segment(closed, self.epoch, self.owner)
        self._step(SegmentListed(segment))
        await self._open_segment()

    async def _leave_once(self, broken: bool) -> None:
        await self._transitions.leave(await self._close_segment(broken), self.epoch, self.owner)
        await self._transitions.delete_next()

    async def _close_segment(self, broken: bool) -> LogSegment:
        if not broken:
            closed = self._machine.closed_segment(await self._ledger.close())
            return self._transitions.mark_degraded(closed, self._ledger)
        self._ledger.abandon()
        closed = await self._transitions.recover(self._machine.segment.listed)
        self._step(SegmentRecovered(closed))
        return closed

    def _check_not_ended(self) -> None:
        """Give up the next ledger where the writer has failed while segments were switched. Raises HandleClosed."""
        if self._machine.phase is Phase.ENDED:
            self._ledger.abandon()
            raise HandleClosed(f"the writer of log {self.name!r} has ended")

    async def _open_segment(self) -> None:
        """Write the header of a segment and wait for it: no record of a segment is read whose writer was fenced before it began."""
        machine, ledger = self._machine, self._ledger
        self._check_not_ended()
        listed, wall_time_us = machine.segment.listed, machine.next_wall_time_us(self._clock.wall_us())
        payload, self._encryptor = self._transitions.header(listed, self.epoch, self.owner, wall_time_us)
        await self._transitions.begin(ledger, payload)
        self._check_not_ended()
        machine.step(SegmentOpened(len(payload), wall_time_us))
        self._compressor = Compressor(self._transitions.settings.compression)
        self._roller.begin(reduced=self.is_reduced)
        self._perform()

    # The end.

    async def close(self) -> None:
        """Wait until everything is acknowledged, close the segment and give the log up. Idempotent.

        Raises:
            LogFenced, OutcomeUnknown: something could not be acknowledged, or the segment not be closed; the writer is closed nevertheless.
            NoSuchLedger: what was acknowledged is lost with its ledger.
        """
        machine = self._machine
        if machine.failure is not None:
            await self.abandon()
        if not machine.can_accept:
            return
        self._flush()
        self._step(CloseRequested())
        try:
            await self._drain()
            self._step(LeaveBegun())
            try:
                await self._transitions.retry(self._leave_once, broken=False)
            except (LogFenced, *LOST) as error:
                self._step(LogLost(error))  # Another writer, or a deletion, keeps what was acknowledged.
                await self._transitions.raise_lost(machine.segment.listed, error)
        finally:
            await self.abandon()

    async def _drain(self) -> None:
        """Wait until everything is acknowledged and the segment is open. Raises what ended the writer."""
        machine = self._machine
        while not machine.is_drained:
            self._idle.clear()
            await self._idle.wait()
        if machine.failure is not None:
            raise machine.failure

    async def abandon(self) -> None:
        """Stop at once without closing the segment, as after an unknown outcome: the next take-over decides what it holds. Idempotent."""
        self._step(Abandoned(self._builder is not None))
        self._stop_timers()
        await self._scope.aclose()
        await self._transitions.delete_next()
        await self._transitions.release(self.owner)

    async def __aenter__(self) -> LogWriter:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            await self.close()
        else:
            await self.abandon()

    def _stop_timers(self) -> None:
        self._flush_timer = _cancel(self._flush_timer)
        self.idle_noop.cancel()
        self._roller.end()


def _cancel(timer: Timer | None) -> Timer | None:
    """Cancel a timer and return None, to put in its place."""
    if timer is not None:
        timer.cancel()
    return None
