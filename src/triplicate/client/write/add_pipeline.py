"""The adds of one ledger on their way: frames to the ensemble, answers back, confirmation in order, and what ends them.

Both kinds of writers stand in front of this: they number the entries, keep what is not confirmed, and tell who waits. Per entry: one
header packed, one digest, one join. Everything else happens once per turn of the loop (sending, together with all other ledgers of the
client: `client.turn`) or once per chunk of answers (confirming). The tracker decides what is confirmed; the ways to the bookies are in
`client.lanes`, and what becomes of bookies that fail in `client.ensemble`.
Source: BookKeeper `LedgerHandle`, `PendingAddOp`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence, Sized
from heapq import heappop, heappush
from typing import Protocol

from triplicate.client.connection.add_framing import AddFraming, V2AddFraming, V3AddFraming
from triplicate.client.connection.bookie_channel import AddStream, InFlight
from triplicate.client.connection.response_errors import SIZE_REFUSALS, error_for_status, too_large
from triplicate.client.context import ClientContext
from triplicate.client.metadata_retry import MetadataRetry
from triplicate.client.write.add_streams import EnsembleStreams, Tracker
from triplicate.client.write.ensemble_changer import EnsembleChanger
from triplicate.client.write.explicit_lac import ExplicitLacUpdater
from triplicate.client.write.force import Force
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
from triplicate.ledger import EntryCodec, LedgerState
from triplicate.metadata import Versioned
from triplicate.runtime import fault_point
from triplicate.wire import ADD_HEAD_BYTES, Status

ENVELOPE_BYTES = 256
"""Room left in a frame for what version 3 of the protocol puts around an entry, so that every client can read what we wrote."""

Payload = bytes | bytearray | memoryview


class Appender(Protocol):
    """The writer in front."""

    @property
    def is_under_way(self) -> bool:
        """Whether anything is left that may still be confirmed."""

    def left_out(self) -> str:
        """Why what is not confirmed will not be part of the ledger, to follow "was closed by its writer"; mostly nothing."""

    def admit(self) -> None:
        """There may be room for those who wait."""

    def frames_of(self, entry_ids: Sequence[int]) -> list[bytes]:
        """The frames of entries that are not confirmed."""

    def release(self, before: int, confirmed: int) -> int:
        """Entries `before` + 1 to `confirmed` are confirmed: forget their frames, tell who waits. Returns the frames' bytes."""

    def give_up(self, cause: TriplicateError, unknown: str) -> None:
        """Fail everybody who waits; `unknown` is the text for those of whose entries something may have been sent."""


class AddPipeline:
    """See the module's text. It belongs to one writer.

    Args:
        created: the ledger's metadata as it was created or taken up.
        frames: what the owner keeps of entries that are numbered and not confirmed; only counted here.
        deferred_sync: bookies answer before they sync; only `force` moves the last-add-confirmed, and the ensemble never changes.
    """

    # More attributes than instances keep in line, and they are on the way of every append.
    __slots__ = (
        "_acknowledged_bytes",
        "_changer",
        "_codec",
        "_context",
        "_encode",
        "_explicit",
        "_flush_due",
        "_forces",
        "_frames",
        "_head",
        "_head_size",
        "_heads",
        "_idle",
        "_lanes",
        "_last_put",
        "_loop",
        "_losses",
        "_metrics",
        "_out",
        "_overhead",
        "_owner",
        "_put_bytes",
        "_sent_at",
        "_sizes",
        "_tracker",
        "_turn",
        "_unsent",
        "_window_bytes",
        "_window_entries",
        "closed",
        "closing",
        "deferred_sync",
        "failure",
        "largest_payload_bytes",
        "last_add_confirmed",
        "ledger_id",
        "length",
        "metadata",
        "pending_bytes",
    )

    def __init__(
        self,
        context: ClientContext,
        ledger_id: int,
        created: Versioned,
        owner: Appender,
        tracker: Tracker,
        frames: Sized,
        *,
        deferred_sync: bool,
    ) -> None:
        metadata = created.value
        self.ledger_id = ledger_id
        self.deferred_sync = deferred_sync
        self.last_add_confirmed = -1
        self.length = 0
        """Payload bytes of the entries up to the last-add-confirmed."""
        self.pending_bytes = 0
        self.failure: TriplicateError | None = None
        self.closing = False
        self.closed: asyncio.Future[int] | None = None
        self.metadata = metadata
        """As the writer found it, for what never changes; `current` is what was last written."""
        self._context = context
        self._metrics = context.metrics
        self._loop = asyncio.get_running_loop()
        self._owner = owner
        self._frames = frames
        self._tracker = tracker
        self._window_entries = context.settings.window_entries
        self._window_bytes = context.settings.window_bytes
        self._codec = EntryCodec(ledger_id, metadata.digest_type, metadata.password)
        self._overhead = ADD_HEAD_BYTES + self._codec.overhead
        self.largest_payload_bytes = context.settings.frame_limit_bytes - ENVELOPE_BYTES - self._overhead
        self._heads: AddFraming = V2AddFraming(self._codec.master_key)
        self._encode = self._codec.encode
        if deferred_sync or context.settings.wire == "v3":
            transactions = context.pool.transactions
            self._heads = V3AddFraming(ledger_id, self._codec.master_key, transactions, deferred_sync=deferred_sync)
        if self._heads.tail:
            encode, tail = self._codec.encode, self._heads.tail
            self._encode = lambda *entry: encode(*entry) + tail
        self._head = b""
        self._head_size = -1
        self._sizes: dict[int, int] = {}
        """Payload sizes of pending entries where the size of a frame does not tell them."""
        self._acknowledged_bytes = 0
        """Payload bytes of the entries up to the one that the tracker confirmed."""
        self._put_bytes = 0
        self._out: list[bytes] = []
        self._last_put = -1
        self._flush_due = False
        self._turn = context.pool.turn
        self._sent_at: list[InFlight] = []
        """Each sending that is not confirmed, with the last entry's id for its mark; a heap, since ids of the caller's need not ascend."""
        self._idle: asyncio.Future[None] | None = None
        self._forces: dict[int, Force] = {}
        self._losses: list[int] | None = None
        """How often the connection of each bookie was lost when the first entry that is not forced was sent to it."""
        self._lanes = EnsembleStreams(tracker, metadata.write_quorum, self._open_lane, owner.frames_of, self._turn)
        self._changer = EnsembleChanger(context, self, tracker, self._lanes, created)
        self._unsent: list[int] | None = [] if self._lanes.striped else None
        """Ids of what was put and not sent, where each entry goes to bookies of its own."""
        self._explicit = ExplicitLacUpdater(context, self._codec, self) if context.settings.explicit_lac_interval_s else None

    @property
    def current(self) -> Versioned:
        """The metadata as last written."""
        return self._changer.current

    @property
    def last_add_pushed(self) -> int:
        """The greatest id that was put on the way; -1 before the first."""
        return self._tracker.last_add_pushed

    @property
    def ensemble(self) -> tuple[str, ...]:
        """The bookies by position."""
        return self._tracker.ensemble

    @property
    def missing_bookies(self) -> tuple[str, ...]:
        """Bookies of the ensemble that failed and take no entries now."""
        return tuple(self._tracker.ensemble[position] for position in self._tracker.suspended)

    @property
    def has_missed_bookies(self) -> bool:
        """Whether a bookie of the ensemble is missing, or ever was while entries were confirmed."""
        return self._changer.continued_without or bool(self._tracker.suspended)

    @property
    def ensemble_changes(self) -> int:
        """How often a bookie had to be replaced."""
        return self._changer.changes

    # On the way out.

    def own(self, payload: Payload) -> bytes:
        """Check that an append may begin, and make its payload unchangeable.

        Raises:
            RecordTooLarge, ArgumentError: the payload. HandleClosed, or what ended the writer: no append begins any more.
        """
        if self.closing or self.failure is not None:
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
        """Raise what forbids further appends, if anything does."""
        if self.closing:
            raise HandleClosed(f"the writer of ledger {self.ledger_id} was closed")
        if self.failure is not None:
            raise self._copy(self.failure, f"{self.failure}; nothing of this append was sent")

    def has_room(self, size: int) -> bool:
        """Whether a payload of this size fits into the window. An empty window takes one of any size."""
        if self._lanes.full:
            return False
        pending = len(self._frames)
        if not pending:
            return True
        return pending < self._window_entries and self.pending_bytes + size + self._overhead <= self._window_bytes

    def has_room_for(self, sizes: Sequence[int]) -> bool:
        """Whether payloads of these sizes fit together.

        Raises:
            ArgumentError: they never do.
        """
        count, total = len(sizes), sum(sizes) + len(sizes) * self._overhead
        if count > self._window_entries or total > max(self._window_bytes, self.largest_payload_bytes):
            raise ArgumentError(
                f"{count} payloads of {total} bytes exceed the window of {self._window_entries} entries and "
                f"{self._window_bytes} bytes; await append_many instead, or send fewer at a time"
            )
        pending = len(self._frames)
        fits = pending + count <= self._window_entries and (not pending or self.pending_bytes + total <= self._window_bytes)
        return fits and not self._lanes.full

    def window_full(self) -> WindowFull:
        """The error for an append that found no room."""
        return WindowFull(
            f"{len(self._frames)} entries of {self.pending_bytes} bytes of ledger {self.ledger_id} are unacknowledged; "
            "await append instead, or slow down"
        )

    def put(self, entry_id: int, payload: bytes) -> bytes:
        """Encode an entry that the tracker has just numbered, and put it on the way. Returns its frame, for the owner to keep."""
        size = len(payload)
        if size != self._head_size:
            self._make_head(entry_id, size)
        self._put_bytes += size
        encode = self._encode
        frame = encode(entry_id, self.last_add_confirmed, self._put_bytes, payload, self._head)
        self.pending_bytes += len(frame)
        self._out.append(frame)
        self._last_put = entry_id
        if self._unsent is not None:
            self._unsent.append(entry_id)
        if not self._flush_due:
            self._flush_due = True
            self._turn.ask(self)
        return frame

    def _make_head(self, entry_id: int, size: int) -> None:
        self._head = self._heads.head(entry_id, self._codec.overhead + size)
        if self._heads.reusable:
            self._head_size = size
        else:
            self._sizes[entry_id] = size

    def flush(self) -> None:
        """Send what was put, and do not wait for the end of this turn of the loop."""
        self.send_put(self._context.host.clock.monotonic())
        self._turn.hand_over()

    def send_put(self, now: float) -> None:
        """Send what was put since the last turn of the loop (Sender)."""
        self._flush_due = False
        out = self._out
        if not out:
            return
        last = self._last_put
        if self.deferred_sync and self._losses is None:
            self._losses = self._lanes.losses()
        if self._unsent is None:
            count = len(out)
            if count == 1:
                frames = out.pop()
            else:
                frames = b"".join(out)
                out.clear()
            flight = (self._tracker.order_of(last), count, len(frames), now)
            self._lanes.send(frames, flight)
        else:
            self._out = []
            flight = (last, len(out), 0, now)
            entry_ids, self._unsent = self._unsent, []
            self._lanes.send_stripes(entry_ids, out, now)
        heappush(self._sent_at, flight if flight[0] == last else (last, *flight[1:]))

    def _open_lane(self, bookie_id: str) -> AddStream:
        pool = self._context.pool
        channel = pool.v3_channel(bookie_id) if self.deferred_sync else pool.channel(bookie_id)
        return channel.open_lane(self.ledger_id, self)

    # Answers (AddSink).

    def adds_acknowledged(self, lane: AddStream, entry_ids: Sequence[int]) -> None:
        """A bookie stored these entries."""
        lane.settle(self._tracker.acknowledge(lane.bookie_id, entry_ids))
        if self._frames:  # Otherwise these were the last copies of entries that are confirmed already.
            self.confirm()

    def add_acknowledged(self, lane: AddStream, entry_id: int) -> None:
        """A bookie stored this entry."""
        is_quorate = self._tracker.acknowledge_next(lane.bookie_id, entry_id)
        if is_quorate is None:
            self.adds_acknowledged(lane, (entry_id,))
            return
        lane.settle(entry_id)
        if is_quorate:
            self.confirm()

    def add_refused(self, bookie_id: str, entry_id: int, status: Status) -> None:
        """A fence, a wrong key or an entry that is too large ends the writer, anything else is that bookie's failure."""
        if status in SIZE_REFUSALS and entry_id > self._tracker.last_add_confirmed:
            (frame,) = self._owner.frames_of([entry_id])
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
        """Do without the bookie, if it still belongs to the ensemble: until it is replaced, or comes back."""
        if self.failure is not None or self._lanes.lane_of(bookie_id) is None:
            return
        self._lanes.suspend(bookie_id)
        if self.deferred_sync:
            self.fail(self._lost_unforced(error))
        else:
            self._changer.bookie_failed(bookie_id, error)
        if self.failure is None:
            self._owner.admit()  # Perhaps it was this bookie that owed too much.

    def room_again(self) -> None:
        """A channel is no longer full; another one may still be."""
        self._lanes.look_for_room()
        self._owner.admit()

    def confirm(self) -> None:
        """Tell those whose entries are confirmed, then let the next ones in."""
        tracker = self._tracker
        before = tracker.last_add_confirmed
        confirmed = tracker.advance()
        if confirmed != before:
            entries = confirmed - before
            size = self._owner.release(before, confirmed)
            self.pending_bytes -= size
            if self._heads.reusable:
                self._acknowledged_bytes += size - entries * self._overhead
            else:
                self._acknowledged_bytes += sum(map(self._sizes.pop, range(before + 1, confirmed + 1)))
            if not self.deferred_sync:
                self._move_last_confirmed(confirmed, self._acknowledged_bytes)
            self._measure(confirmed, entries, size)
        if self.failure is None:
            self._owner.admit()
        if self._idle is not None:
            self._tell_idle()

    def _move_last_confirmed(self, last_add_confirmed: int, length: int) -> None:
        before, self.last_add_confirmed, self.length = self.last_add_confirmed, last_add_confirmed, length
        if self._explicit is not None:
            self._explicit.moved(before)

    def _measure(self, confirmed: int, entries: int, size_bytes: int) -> None:
        metrics, sent_at = self._metrics, self._sent_at
        metrics.added.value += entries
        metrics.added_bytes.value += size_bytes
        if sent_at and sent_at[0][0] <= confirmed:
            now = self._turn.received_at or self._context.host.clock.monotonic()
            while sent_at and sent_at[0][0] <= confirmed:
                metrics.add_seconds.observe(now - heappop(sent_at)[3])

    # Forcing.

    async def force(self) -> int:
        """Have all bookies of the ensemble sync what they were sent; see `WriteHandle.force`."""
        self.check_usable()
        last, length = self._tracker.last_add_confirmed, self._acknowledged_bytes
        if last < 0:
            return self.last_add_confirmed
        force = Force(self._context, self.ledger_id, self._tracker.ensemble, lambda force: self._force_ended(force, last, length))
        self._forces[id(force)] = force
        return await force.future

    def _force_ended(self, force: Force, last: int, length: int) -> None:
        del self._forces[id(force)]
        if force.error is not None:
            text = f"the force of ledger {self.ledger_id} failed, and entries behind {self.last_add_confirmed} may be unforced"
            _settle(force.future, self._copy(force.error, f"{text}: {force.error}; force again"))
        elif self.deferred_sync and self._losses is not None and self._losses != self._lanes.losses():
            # Whatever answered the force may have been started anew and never have seen what it acknowledged before.
            cause = self._lost_unforced(BookieError("the connection to a bookie broke after entries were acknowledged there"))
            self.fail(cause)
            _settle(force.future, self._copy(cause, str(cause)))
        else:
            if last > self.last_add_confirmed:
                self._move_last_confirmed(last, length)
            if not self._frames and self.last_add_confirmed == self._tracker.last_add_confirmed:
                self._losses = None
            if not force.future.done():
                force.future.set_result(self.last_add_confirmed)
        self._tell_idle()

    def _lost_unforced(self, cause: BookieError) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{cause}; ledger {self.ledger_id} has deferred sync, for which the ensemble never changes, so its writer ended: "
            f"close it, which keeps the entries up to {self.last_add_confirmed}, and go on in a new ledger"
        )

    # The end.

    def fail(self, cause: TriplicateError) -> None:
        """End the writer: everybody who waits gets the error. The first cause stays."""
        if self.failure is None:
            self._context.host.trace("client.writer_failed", ledger=self.ledger_id, why=str(cause), pending=len(self._frames))
            self._context.metrics.add_failures.inc(len(self._frames))
            self._stop(cause)

    def _stop(self, cause: TriplicateError) -> None:
        self.failure = cause
        self._lanes.close()
        self._changer.end()
        if self._explicit is not None:
            self._explicit.stop()
        first, last = self._tracker.last_add_confirmed + 1, self._tracker.last_add_pushed
        self._owner.give_up(cause, f"{cause}; entries {first} to {last} of ledger {self.ledger_id} have an unknown outcome")
        for force in list(self._forces.values()):
            force.give_up()
            _settle(force.future, self._copy(cause, f"{cause}; whether the bookies synced is unknown"))
        self._forces.clear()
        self._out.clear()
        self._tell_idle()

    def settle(self, future: asyncio.Future[int] | asyncio.Future[range], cause: TriplicateError, text: str) -> None:
        """Fail a future with an exception of its own, since each raising adds to its traceback."""
        _settle(future, self._copy(cause, text))

    def _copy(self, cause: TriplicateError, text: str) -> TriplicateError:
        error = type(cause)(text)
        if isinstance(error, LedgerError):
            error.ledger_id = self.ledger_id
        if isinstance(error, BookieError) and isinstance(cause, BookieError):
            error.bookie_id = cause.bookie_id
        error.__cause__ = cause
        return error

    async def close(self, *, wait: bool) -> int:
        """See `WriteHandle.close`."""
        if self.closed is None:
            self.closing = True
            closed: asyncio.Future[int] = self._loop.create_future()
            task = self._context.scope.spawn(self._close_into(closed, wait), name=f"close ledger {self.ledger_id}")
            # Only now: had the client been closed before, whoever asks again must hear it again, not wait for nobody.
            self.closed = closed
            task.add_done_callback(lambda _: self._closed_at_last())
        return await asyncio.shield(self.closed)

    async def _close_into(self, result: asyncio.Future[int], wait: bool) -> None:
        """Runs in the client's scope, so that a caller who is cancelled does not leave the ledger half closed."""
        try:
            last_entry_id = await self._close(wait)
        except TriplicateError as error:
            _settle(result, error)
        else:
            result.set_result(last_entry_id)

    def _closed_at_last(self) -> None:
        assert self.closed is not None
        _settle(self.closed, HandleClosed(f"the client was closed while ledger {self.ledger_id} was being closed"))

    async def _close(self, wait: bool) -> int:
        if wait:
            while self.failure is None and (self._owner.is_under_way or self._tracker.changing or self._forces):
                self._idle = self._loop.create_future()
                await self._idle
        failure = self.failure
        if isinstance(failure, LedgerFenced | LedgerClosed | Unauthorized):
            raise self._copy(failure, str(failure))
        self._changer.cancel()
        if failure is None:
            self._stop(LedgerClosed(f"ledger {self.ledger_id} was closed by its writer{self._owner.left_out()}"))
        return await self._write_closed(self.last_add_confirmed, self.length)

    @fault_point("client.close.writing")
    async def _write_closed(self, last: int, length: int) -> int:
        patience = MetadataRetry(self._context, self.ledger_id, f"the closing of ledger {self.ledger_id}")
        closed = await patience.swap(
            self._changer.current, lambda metadata: metadata.closed(last, length), lambda found: self._closed_by_whom(found, last)
        )
        self._changer.current = closed
        self._context.host.trace("client.ledger_closed", ledger=self.ledger_id, last=last)
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
        """Stop without closing the ledger. Idempotent."""
        self.closing = True
        self._changer.cancel()
        if self.failure is None:
            self._stop(HandleClosed(f"the writer of ledger {self.ledger_id} was abandoned; recovery decides where the ledger ends"))

    def _tell_idle(self) -> None:
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)


def _settle(future: asyncio.Future[int] | asyncio.Future[range], error: BaseException) -> None:
    """Fail a future that nobody may be waiting for any more."""
    if not future.done():
        future.set_exception(error)
        # The error is also what every later call on this writer raises, so it is not lost when nobody awaits this future.
        future.exception()
