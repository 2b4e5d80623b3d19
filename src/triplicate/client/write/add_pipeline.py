"""The adds of one ledger: what is sent is confirmed in order, and failures replace bookies or end the writer.

Both kinds of writers use a pipeline. They number the entries, keep the frames of unconfirmed ones, and resolve the futures of
appends. `AddSender` sends, the tracker decides what is confirmed, `EnsembleChanger` handles bookies that fail. Acknowledgements are
handled once per chunk of answers and ledger. docs/append-path.md draws the whole path. Source: BookKeeper `LedgerHandle`, `PendingAddOp`.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Protocol, TypeVar

from triplicate.client.connection.bookie_channel import AddStream
from triplicate.client.connection.response_errors import SIZE_REFUSALS, error_for_status, too_large
from triplicate.client.context import ClientContext
from triplicate.client.write.add_latency import AddLatency
from triplicate.client.write.add_sender import AddSender
from triplicate.client.write.add_streams import EnsembleStreams, Tracker
from triplicate.client.write.ensemble_changer import EnsembleChanger
from triplicate.client.write.explicit_lac import ExplicitLacUpdater
from triplicate.client.write.force import Force, LedgerForces
from triplicate.client.write.ledger_close import LedgerClose
from triplicate.errors import (
    ArgumentError,
    BookieError,
    HandleClosed,
    LedgerClosed,
    LedgerError,
    LedgerFenced,
    OutcomeUnknown,
    RecordTooLarge,
    TriplicateError,
    Unauthorized,
    WindowFull,
)
from triplicate.ledger import AdvDomainWriteTracker, DomainWriteTracker, EntryCodec, LedgerMetadata
from triplicate.metadata import Versioned
from triplicate.runtime import AdmissionWindow, fail, resolve
from triplicate.wire import ADD_HEAD_BYTES, Status

ENVELOPE_BYTES = 256
"""Room left in a frame for the version-3 envelope of an entry, so that every client can read what this one wrote."""

Payload = bytes | bytearray | memoryview
Error = TypeVar("Error", bound=BaseException)


class Appender(Protocol):
    """The writer in front of a pipeline."""

    @property
    def has_pending(self) -> bool:
        """Whether entries are queued or unconfirmed that may still be confirmed."""

    def left_out(self) -> str:
        """Why unconfirmed entries are not part of the closed ledger, to follow "was closed by its writer"; usually empty."""

    def admit_awaited(self) -> None:
        """Entries were confirmed: send the queued entry that all unconfirmed ones wait for, if there is one."""

    def frames_of(self, entry_ids: Sequence[int]) -> list[bytes]:
        """The frames of unconfirmed entries."""

    def release(self, before: int, confirmed: int) -> int:
        """Entries `before` + 1 to `confirmed` are confirmed: drop their frames and resolve their futures. Returns the frames' bytes."""

    def fail_pending(self, cause: TriplicateError) -> None:
        """Fail every pending append."""


class AddPipeline:
    """Belongs to one writer. See the module's text.

    Attributes:
        last_add_confirmed: id of the last entry that is confirmed; with deferred sync, forced as well. -1 before.
        length: payload bytes of the entries up to the last-add-confirmed.
        failure: what ended the writer.
        is_closing: whether the writer was closed or abandoned.
        overhead_bytes: bytes of an entry's frame beside its payload, without the version-3 envelope.
        window: admits entries by the bytes of their frames, without the version-3 envelope.

    Args:
        created: the ledger's metadata as it was created or taken up.
        frames: the writer's frames of unconfirmed entries; only counted here.
        deferred_sync: bookies acknowledge before they sync; only `force` advances the last-add-confirmed, and the ensemble never changes.
    """

    __slots__ = (
        "_acknowledged_bytes",
        "_appender",
        "_changer",
        "_close",
        "_context",
        "_explicit_lac",
        "_forces",
        "_frames",
        "_latency",
        "_streams",
        "_tracker",
        "failure",
        "is_closing",
        "largest_payload_bytes",
        "last_add_confirmed",
        "ledger_id",
        "length",
        "overhead_bytes",
        "sender",
        "window",
    )

    def __init__(
        self,
        context: ClientContext,
        ledger_id: int,
        created: Versioned,
        appender: Appender,
        tracker: Tracker,
        frames: Sized,
        *,
        deferred_sync: bool,
    ) -> None:
        metadata, settings, pool = created.value, context.settings, context.pool
        codec = EntryCodec(ledger_id, metadata.digest_type, metadata.password)
        self.ledger_id = ledger_id
        self.last_add_confirmed = -1
        self.length = 0
        self.failure: TriplicateError | None = None
        self.is_closing = False
        self._close: LedgerClose | None = None
        self._context = context
        self._appender = appender
        self._frames = frames
        self._tracker = tracker
        self.overhead_bytes = ADD_HEAD_BYTES + codec.overhead
        self.largest_payload_bytes = settings.frame_limit_bytes - ENVELOPE_BYTES - self.overhead_bytes
        self._acknowledged_bytes = 0
        """Payload bytes of the entries that the tracker confirmed."""
        self.window = AdmissionWindow(settings.window_entries, settings.window_bytes)
        channel_to = pool.v3_channel if deferred_sync else pool.channel
        self._streams = EnsembleStreams(
            tracker,
            metadata.write_quorum,
            lambda bookie_id: channel_to(bookie_id).open_stream(ledger_id, self),
            appender.frames_of,
            pool.scheduler,
            self.window,
        )
        self._forces = LedgerForces(context, ledger_id, self._streams, deferred_sync=deferred_sync)
        self._latency = AddLatency(context.metrics, pool.scheduler, context.host.clock)
        self.sender = AddSender(context, codec, tracker, self._streams, self._latency, self._forces)
        self._changer = EnsembleChanger(context, self, tracker, self._streams, created)
        self._explicit_lac = ExplicitLacUpdater(context, codec, metadata, tracker) if settings.explicit_lac_interval_s else None

    @property
    def deferred_sync(self) -> bool:
        """Whether bookies acknowledge before they sync."""
        return self._forces.deferred_sync

    @property
    def metadata(self) -> LedgerMetadata:
        """As last written by this writer."""
        return self._changer.current.value

    @property
    def last_add_pushed(self) -> int:
        """The greatest id that was enqueued; -1 before the first."""
        return self._tracker.last_add_pushed

    @property
    def missing_bookies(self) -> tuple[str, ...]:
        """Bookies of the ensemble that failed and receive no entries now."""
        return tuple(self._tracker.ensemble[position] for position in self._tracker.suspended)

    @property
    def has_missed_bookies(self) -> bool:
        """Whether a bookie of the ensemble is missing, or ever was while entries were confirmed."""
        return self._changer.continued_without or bool(self._tracker.suspended)

    @property
    def waiting_for_domains(self) -> int:
        """Number of entries that an ack quorum has acknowledged and that wait for further fault domains."""
        tracker = self._tracker
        if self.failure is None and isinstance(tracker, DomainWriteTracker | AdvDomainWriteTracker):
            return tracker.waiting_for_domains
        return 0

    @property
    def ensemble_changes(self) -> int:
        """How many times a bookie had to be replaced."""
        return self._changer.changes

    # Appends.

    def validate(self, payload: Payload) -> bytes:
        """Check that the writer is usable and the payload fits; return the payload as immutable bytes.

        Raises:
            RecordTooLarge, ArgumentError: the payload. HandleClosed, or the error that ended the writer: it accepts no further appends.
        """
        if self.is_closing or self.failure is not None:
            self.check_usable()
        if type(payload) is not bytes:
            if not isinstance(payload, bytes | bytearray | memoryview):
                raise ArgumentError(f"a payload is bytes, not {type(payload).__name__}")
            payload = bytes(payload)
        if len(payload) > self.largest_payload_bytes:
            raise RecordTooLarge(
                f"a record of {len(payload)} bytes exceeds the limit of {self.largest_payload_bytes} bytes "
                f"(frame_limit_bytes {self._context.settings.frame_limit_bytes}); nothing was written, split it"
            )
        return payload

    def check_usable(self) -> None:
        """Raise the error that forbids further appends, if there is one."""
        if self.is_closing:
            raise HandleClosed(f"the writer of ledger {self.ledger_id} was closed")
        if self.failure is not None:
            raise self.unsent(self.failure)

    def flush(self) -> None:
        """Send what was enqueued without waiting for the end of this tick of the loop."""
        self.sender.flush(self._context.host.clock.monotonic())

    # Answers (AddSink).

    def adds_acknowledged(self, stream: AddStream, entry_ids: Sequence[int]) -> None:
        """A bookie stored these entries."""
        stream.release(self._tracker.acknowledge(stream.bookie_id, entry_ids))
        if self._frames:  # Otherwise these were the last copies of entries that are confirmed already.
            self.confirm()

    def add_acknowledged(self, stream: AddStream, entry_id: int) -> None:
        """A bookie stored this entry."""
        is_quorate = self._tracker.acknowledge_next(stream.bookie_id, entry_id)
        if is_quorate is None:
            self.adds_acknowledged(stream, (entry_id,))
            return
        stream.release(entry_id)
        if is_quorate:
            self.confirm()

    def add_refused(self, bookie_id: str, entry_id: int, status: Status) -> None:
        """End the writer on a fence, a wrong key or an entry that is too large; otherwise treat the bookie as failed."""
        if status in SIZE_REFUSALS and entry_id > self._tracker.last_add_confirmed:
            (frame,) = self._appender.frames_of([entry_id])
            oversize = too_large(status, bookie_id, self.ledger_id, entry_id, len(frame))
            if oversize is not None:
                self.fail(oversize)
                return
        error = error_for_status(status, bookie_id, self.ledger_id, f"add of entry {entry_id}")
        if isinstance(error, BookieError):
            self.bookie_failed(bookie_id, error)
        else:
            self.fail(error)

    def bookie_failed(self, bookie_id: str, error: BookieError) -> None:
        """Suspend the bookie, if it belongs to the ensemble, until it is replaced or resumed."""
        if self.failure is not None or self._streams.stream_of(bookie_id) is None:
            return
        self._streams.suspend(bookie_id)
        if self.deferred_sync:
            self.fail(self._unforced_error(error))
        else:
            self._changer.bookie_failed(bookie_id, error)
        if self.failure is None:
            self.window.admit_waiters()  # The bookie may have been the one that owed too many answers.

    def resume_adds(self) -> None:
        """A channel has room again; another one may still be full."""
        self._streams.check_room()
        self.window.admit_waiters()

    def check_pace(self, now: float) -> None:
        """Find out whether one bookie holds the window back, and replace it if it does so for long."""
        if self.window.is_full and not self.deferred_sync and self.failure is None:
            self._changer.check_pace(now)

    def bookie_lost(self, bookie_id: str) -> None:
        """A bookie has not been registered for long. It is replaced if another one can be chosen."""
        if not self.deferred_sync and self.failure is None:
            self._changer.bookie_lost(bookie_id)

    def confirm(self) -> None:
        """Confirm the entries that have their ack quorum, then admit the next appends."""
        tracker = self._tracker
        before = tracker.last_add_confirmed
        confirmed = tracker.advance()
        if confirmed != before:
            size = self._appender.release(before, confirmed)
            count = confirmed - before
            payload_bytes = self.sender.payload_bytes(before, confirmed, size, self.overhead_bytes)
            self._acknowledged_bytes += payload_bytes
            if not self._forces.deferred_sync:
                self._move_last_confirmed(confirmed, self._acknowledged_bytes)
            self._latency.confirm(confirmed, count, size)
            self._appender.admit_awaited()
            self.window.release(count, payload_bytes + count * self.overhead_bytes)
        if self._close is not None:
            self._close.wake()

    def _move_last_confirmed(self, last_add_confirmed: int, length: int) -> None:
        before, self.last_add_confirmed, self.length = self.last_add_confirmed, last_add_confirmed, length
        self.sender.piggybacked_lac = last_add_confirmed
        if self._explicit_lac is not None:
            self._explicit_lac.lac_advanced(before, last_add_confirmed)

    # Forces.

    async def force(self) -> int:
        """Have all bookies of the ensemble sync what they were sent; see `WriteHandle.force`."""
        self.check_usable()
        last, length = self._tracker.last_add_confirmed, self._acknowledged_bytes
        if last < 0:
            return self.last_add_confirmed
        return await self._forces.begin(self._tracker.ensemble, lambda force: self._force_ended(force, last, length)).future

    def _force_ended(self, force: Force, last: int, length: int) -> None:
        self._forces.end(force)
        if force.error is not None:
            text = f"the force of ledger {self.ledger_id} failed, and entries behind {self.last_add_confirmed} may be unforced"
            fail(force.future, self.copy_error(force.error, f"{text}: {force.error}; force again"))
        elif self._forces.may_have_lost_entries:
            # A bookie that answered the force may have restarted before, and may have lost what it had acknowledged.
            cause = self._unforced_error(BookieError("the connection to a bookie broke after entries were acknowledged there"))
            self.fail(cause)
            fail(force.future, self.copy_error(cause, str(cause)))
        else:
            if last > self.last_add_confirmed:
                self._move_last_confirmed(last, length)
            if not self._frames and self.last_add_confirmed == self._tracker.last_add_confirmed:
                self._forces.note_all_forced()
            resolve(force.future, self.last_add_confirmed)
        if self._close is not None:
            self._close.wake()

    def _unforced_error(self, cause: BookieError) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{cause}; ledger {self.ledger_id} has deferred sync, for which the ensemble never changes, so its writer ended: "
            f"close it, which keeps the entries up to {self.last_add_confirmed}, and continue in a new ledger"
        )

    # The end.

    def fail(self, cause: TriplicateError) -> None:
        """End the writer and fail every pending append and force. Only the first cause counts."""
        if self.failure is None:
            self._context.host.trace("client.writer_failed", ledger=self.ledger_id, why=str(cause), pending=len(self._frames))
            self._context.metrics.add_failures.inc(len(self._frames))
            self._stop(cause)

    def _stop(self, cause: TriplicateError) -> None:
        self.failure = cause
        self._streams.close()
        self._changer.end()
        if self._explicit_lac is not None:
            self._explicit_lac.stop()
        self._appender.fail_pending(cause)
        for future in self._forces.cancel_all():
            fail(future, self.copy_error(cause, f"{cause}; whether the bookies synced is unknown"))
        self.sender.clear()
        if self._close is not None:
            self._close.wake()

    def unknown_outcome(self, cause: Error) -> Error:
        """The error of an append of which an entry was sent and not confirmed."""
        first, last = self._tracker.last_add_confirmed + 1, self._tracker.last_add_pushed
        return self.copy_error(cause, f"{cause}; entries {first} to {last} of ledger {self.ledger_id} have an unknown outcome")

    def unsent(self, cause: Error) -> Error:
        """The error of an append of which nothing was sent."""
        return self.copy_error(cause, f"{cause}; nothing of this append was sent")

    def window_full(self) -> WindowFull:
        """The error of an append that found no room and does not wait for it."""
        return WindowFull(
            f"{self.window.entries} entries of {self.window.size_bytes} bytes of ledger {self.ledger_id} are unacknowledged; "
            "await append instead, or slow down"
        )

    def copy_error(self, cause: Error, text: str) -> Error:
        """A separate exception for each future or call, since each raise extends the traceback."""
        error = type(cause)(text)
        if isinstance(error, LedgerError):
            error.ledger_id = self.ledger_id
        if isinstance(error, BookieError) and isinstance(cause, BookieError):
            error.bookie_id = cause.bookie_id
        error.__cause__ = cause
        return error

    @property
    def is_finished(self) -> bool:
        """Whether the writer was abandoned, or its closing is over."""
        return self.is_closing and (self._close is None or self._close.is_done)

    async def close(self, *, wait: bool) -> int:
        """See `WriteHandle.close`."""
        if self._close is None:
            self.is_closing = True
            self._close = LedgerClose(self._context, self.ledger_id, lambda closing: self._run_close(closing, wait=wait))
        return await self._close.result()

    async def _run_close(self, closing: LedgerClose, *, wait: bool) -> int:
        if wait:
            await closing.wait_until(lambda: not self._is_busy)
        failure = self.failure
        if isinstance(failure, LedgerFenced | LedgerClosed | Unauthorized):
            raise self.copy_error(failure, str(failure))
        self._changer.cancel()
        if failure is None:
            self._stop(LedgerClosed(f"ledger {self.ledger_id} was closed by its writer{self._appender.left_out()}"))
        last = self.last_add_confirmed
        self._changer.current = await closing.write(self._changer.current, last, self.length)
        return last

    @property
    def _is_busy(self) -> bool:
        """Whether appends, a change of ensemble or forces are under way that may still succeed."""
        return self.failure is None and (self._appender.has_pending or self._tracker.changing or bool(self._forces))

    def abandon(self) -> None:
        """Stop without closing the ledger. Idempotent."""
        self.is_closing = True
        self._changer.cancel()
        if self.failure is None:
            self._stop(HandleClosed(f"the writer of ledger {self.ledger_id} was abandoned; recovery decides where the ledger ends"))
