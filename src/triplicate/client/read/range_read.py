"""Reading entries from their replicas: many at a time, each from the next replica when one fails or is slow.

Source: BookKeeper `PendingReadOp`, `BatchedReadOp`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, cast

from triplicate.client.connection.response_errors import EXPLICIT_NEGATIVES, error_for_status
from triplicate.client.context import ClientContext
from triplicate.client.hedged_reads import TIMER_ERROR_S
from triplicate.client.read.batch_read import BatchRead, BatchSupport
from triplicate.errors import BookieError, DigestMismatch, HandleClosed, NoSuchEntry, ReadFailed, TriplicateError
from triplicate.ledger import LEAST_DELAY_S, Entry, EntryCodec, LedgerMetadata, ReadKind, ReadOrder, ReadPlan, write_sets
from triplicate.runtime import Timer, fail, resolve
from triplicate.wire import ReadResponse, Status

FIRST_GUESS_BYTES = 4096
"""Size of an entry as long as none has been seen."""

RANGE_MEASURED_EVERY = 8
"""Of the single reads of a range, one in this number is measured, which saves a microsecond for each of the others."""

BATCHES_AT_A_TIME = 4
"""Among how many batches the window of bytes is divided."""


def replicas_of(metadata: LedgerMetadata, entry_id: int) -> list[str]:
    """The bookies that should hold an entry, in the order in which they are read."""
    ensemble = metadata.ensemble_of(entry_id)
    sets = write_sets(len(ensemble), metadata.write_quorum)
    return [ensemble[position] for position in sets[entry_id % len(ensemble)]]


def segment_end(metadata: LedgerMetadata, entry_id: int) -> int:
    """The first entry of the next segment; 2**63 when there is none."""
    return min([segment.first_entry_id for segment in metadata.segments if segment.first_entry_id > entry_id], default=1 << 63)


class OmittedRange(NamedTuple):
    """A range that a batch left out: entries `first` to `stop` - 1, and the bookie that delivered the entry before."""

    first: int
    stop: int
    bookie_id: str


class SentRead(NamedTuple):
    """The latest read of a single entry, and the one before it that was late."""

    bookie_id: str
    sent_at: float
    late: SentRead | None = None


class FirstReplicas:
    """The replica from which each entry is read first, from a table that holds for one segment at a time.

    If every bookie of the ensemble has every entry, those that come first in the order take turns, each for `sticky_entries` consecutive
    entries.
    """

    def __init__(self, metadata: LedgerMetadata, order: ReadOrder, sticky_entries: int) -> None:
        self._metadata = metadata
        self._order = order
        self._sticky_entries = sticky_entries
        self._version = order.version
        self._segment = range(0)
        self._turn_entries = 1
        self._replicas: list[str] = []
        """Of the entries of `_segment`, by turn modulo their number."""

    def of(self, entry_id: int) -> str:
        if entry_id not in self._segment or self._version != self._order.version:
            self._make_table(entry_id)
        return self._replicas[entry_id // self._turn_entries % len(self._replicas)]

    def _make_table(self, entry_id: int) -> None:
        metadata, order = self._metadata, self._order
        ensemble = metadata.ensemble_of(entry_id)
        if len(ensemble) == metadata.write_quorum:
            self._turn_entries = self._sticky_entries
            self._replicas = order.first_choices(ensemble)
        else:
            self._turn_entries = 1
            sets = write_sets(len(ensemble), metadata.write_quorum)
            self._replicas = [order.order([ensemble[position] for position in positions])[0] for positions in sets]
        self._segment = range(metadata.segment_of(entry_id).first_entry_id, segment_end(metadata, entry_id))
        self._version = order.version


class DeliveredEntries:
    """The entries of a range as they arrive, in any order."""

    __slots__ = ("_entries", "first", "missing", "received", "received_bytes")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.missing = last - first + 1
        self.received = 0
        self.received_bytes = 0
        """Payload bytes."""
        self._entries: list[Entry | None] = [None] * self.missing

    def has(self, entry_id: int) -> bool:
        return self._entries[entry_id - self.first] is not None

    def add(self, first: int, entries: Sequence[Entry], payload_bytes: int) -> None:
        """Add consecutive entries from `first` on, none of which is here yet."""
        start = first - self.first
        self._entries[start : start + len(entries)] = entries
        self.missing -= len(entries)
        self.received += len(entries)
        self.received_bytes += payload_bytes
        assert self.missing >= 0, "each entry is delivered once"

    @property
    def average_bytes(self) -> int:
        """Size of an entry, rounded up."""
        return self.received_bytes // self.received + 1 if self.received else FIRST_GUESS_BYTES

    def complete(self) -> list[Entry]:
        assert not self.missing, "each has its entry now"
        return cast("list[Entry]", self._entries)


class RangeRead:
    """One reading of entries `first` to `last`.

    Each entry is read from the replica that `FirstReplicas` names; a `ReadPlan` is made only for an entry that is late or fails there.
    Where batches are possible, they are read instead, each from the bookie with the fewest batches in flight among the healthy ones, or
    among those of the own region. Entries that a batch omits are read again. Both the entries and the bytes in flight are bounded; bytes
    are estimated by the average entry so far, and known exactly for batches.

    Args:
        batches: of the handle for which this is read.
        unconfirmed: entries may not exist: `NoSuchEntry` when every replica denies one.
    """

    def __init__(
        self,
        context: ClientContext,
        metadata: LedgerMetadata,
        codec: EntryCodec,
        first: int,
        last: int,
        batches: BatchSupport,
        *,
        unconfirmed: bool = False,
    ) -> None:
        self.future: asyncio.Future[list[Entry]] = asyncio.get_running_loop().create_future()
        self.max_lac = -1
        """The greatest last-add-confirmed that came with an answer (version 3 only)."""
        self.delivered = DeliveredEntries(first, last)
        self._context = context
        self._metadata = metadata
        self._codec = codec
        self._last = last
        self._next = first
        self._batches = batches
        self._unconfirmed = unconfirmed
        self._singles: deque[int] = deque()
        self._rests: deque[OmittedRange] = deque()
        self._first_replicas = FirstReplicas(metadata, context.reads.order, context.settings.sticky_read_entries)
        self._batches_at: dict[str, int] = {}
        """Batches in flight, by the bookie that was asked first."""
        self._plans: dict[int, ReadPlan] = {}
        self._failed: dict[str, None] = {}
        self._on_the_way: dict[int, SentRead] = {}
        """By entry, in the order of the times; batches are not in it."""
        self._hedge: Timer | None = None
        self._measured_every = 1 if first == last else RANGE_MEASURED_EVERY
        self._now = context.host.clock.monotonic
        context.near.refresh()
        if context.reads.is_on:
            self.future.add_done_callback(self._stop_hedging)
        self._pump()

    def _window(self, batches: int = 1) -> int:
        """Entries that may be in flight, if this many batches share the bytes."""
        settings = self._context.settings
        return max(1, min(settings.read_window_entries, settings.read_window_bytes // batches // self.delivered.average_bytes))

    @property
    def _batches_out(self) -> int:
        return sum(self._batches_at.values())

    def _pump(self) -> None:
        window = self._window()
        while not self.future.done():
            if self._rests and self._batches_out < BATCHES_AT_A_TIME:
                self._request_batch(*self._rests.popleft())
            elif self._singles and len(self._on_the_way) < window:
                entry_id = self._singles.popleft()
                self._request(entry_id, self._first_replicas.of(entry_id))
            elif self._next < self._last and self._batches.fits(self._metadata):
                if self._batches_out + len(self._rests) >= BATCHES_AT_A_TIME:
                    break
                first = self._next
                stop = min(first + self._window(BATCHES_AT_A_TIME), segment_end(self._metadata, first), self._last + 1)
                self._next = stop
                self._request_batch(first, stop, "")
            elif self._next <= self._last and len(self._on_the_way) < window:
                entry_id, self._next = self._next, self._next + 1
                self._request(entry_id, self._first_replicas.of(entry_id))
            else:
                break

    # Batches.

    def _request_batch(self, first: int, stop: int, preferred: str) -> None:
        settings, order, batches_at = self._context.settings, self._context.reads.order, self._batches_at
        replicas = replicas_of(self._metadata, first)
        rank = order.batch_rank
        replicas.sort(key=lambda name: (rank(name), name in self._failed, name != preferred, batches_at.get(name, 0)))
        replicas = order.with_far_third(replicas)
        max_bytes = min(settings.frame_limit_bytes, settings.read_window_bytes // BATCHES_AT_A_TIME)
        batches_at[replicas[0]] = batches_at.get(replicas[0], 0) + 1
        BatchRead(self._context, self._codec, first, stop - first, max_bytes, replicas, self._batch_done, self._is_wanted)

    def _is_wanted(self) -> bool:
        return not self.future.done()

    def _batch_done(self, batch: BatchRead) -> None:
        self._batches_at[batch.first_asked] -= 1
        if self.future.done():
            return
        stop = batch.first + batch.count
        if batch.entries:
            following = batch.first + len(batch.entries)
            if following < stop:
                self._rests.append(OmittedRange(following, stop, batch.bookie_id))
            self._note_failures(batch.plan, batch.bookie_id)
            self._deliver(batch.first, batch.entries, batch.payload_bytes)
        elif batch.closed is not None:
            self._fail(batch.closed)
        elif batch.impossible:
            self._batches.refuse(batch.bookie_id)
            self._singles.extend(range(batch.first, stop))
            self._pump()
        else:
            self._fail_read(batch.plan)

    def _note_failures(self, plan: ReadPlan, delivered: str) -> None:
        """Read from failed bookies last from now on."""
        for bookie_id in plan.unhelpful:
            if bookie_id != delivered:
                self._failed[bookie_id] = None

    # Single entries.

    def _request(self, entry_id: int, bookie_id: str, late: SentRead | None = None) -> None:
        try:
            channel = self._context.pool.channel(bookie_id)
        except HandleClosed as closed:
            self._fail(closed)
            return
        self._on_the_way[entry_id] = SentRead(bookie_id, self._now(), late)
        channel.read(self._codec.ledger_id, entry_id, self._answered, (entry_id, bookie_id))
        self._context.reads.note_sent(bookie_id)
        if self._context.reads.is_on:
            if self._hedge is None:
                self._hedge_at(self._now() + self._context.reads.delays.delay_s(ReadKind.SINGLE))
            if not self._context.reads.health.is_sound:
                self._context.reads.probe(self._codec.ledger_id, entry_id, replicas_of(self._metadata, entry_id))

    def _answered(self, token: tuple[int, str], response: ReadResponse | None, error: BookieError | None) -> None:
        entry_id, bookie_id = token
        if self.future.done():
            return
        if self.delivered.has(entry_id):
            return  # Another replica was quicker.
        if response is not None and response.status == Status.OK and response.body is not None:
            try:
                entry = self._codec.decode(response.body, entry_id)
            except DigestMismatch as mismatch:
                self._context.metrics.digest_mismatches.labels(bookie=bookie_id).inc()
                self._context.host.trace("client.digest_mismatch", ledger=self._codec.ledger_id, entry=entry_id, bookie=bookie_id)
                self._context.reads.note_failure(bookie_id, None)
                self._try_next(entry_id, bookie_id, str(mismatch))
            else:
                self._plans.pop(entry_id, None)
                sent = self._on_the_way.pop(entry_id, None)
                if sent is not None and (sent.late is not None or entry_id % self._measured_every == 0):
                    self._measure(bookie_id, sent)
                if response.max_lac is not None:
                    # Not where the copy is damaged: the bookie may have this number from the same damaged bytes.
                    self.max_lac = max(self.max_lac, response.max_lac)
                self._deliver(entry_id, (entry,), len(entry.payload))
        elif response is not None and response.status in EXPLICIT_NEGATIVES:
            self._try_next(entry_id, bookie_id, None)
        else:
            status = response.status if response is not None else Status.IO_ERROR
            refusal = error or error_for_status(status, bookie_id, self._codec.ledger_id, f"read of entry {entry_id}")
            self._context.reads.note_failure(bookie_id, error)
            self._try_next(entry_id, bookie_id, str(refusal))

    def _deliver(self, first: int, entries: Sequence[Entry], payload_bytes: int) -> None:
        self.delivered.add(first, entries, payload_bytes)
        if self.delivered.missing:
            self._pump()
        else:
            resolve(self.future, self.delivered.complete())

    def _try_next(self, entry_id: int, bookie_id: str, failure: str | None) -> None:
        """A replica did not deliver.

        Args:
            failure: why; None for an explicit "no such entry".
        """
        plan = self._plan_of(entry_id, bookie_id)
        if failure is None:
            plan.absent(bookie_id)
        else:
            plan.failed(bookie_id, failure)
        following = plan.next_replica()
        if following is not None:
            self._request(entry_id, following)
        elif not plan.awaited:
            self._fail_read(plan)
        elif (late := self._on_the_way[entry_id].late) is not None:
            self._on_the_way[entry_id] = late

    def _plan_of(self, entry_id: int, asked: str) -> ReadPlan:
        """The plan of an entry; made when the read from its first replica fails."""
        plan = self._plans.get(entry_id)
        if plan is None:
            replicas = self._context.reads.order.order(replicas_of(self._metadata, entry_id))
            replicas.sort(key=lambda bookie_id: bookie_id != asked)
            plan = self._plans[entry_id] = ReadPlan(entry_id, replicas, len(replicas))
            plan.next_replica()
        return plan

    # Slow replicas.

    def _measure(self, bookie_id: str, sent: SentRead) -> None:
        """Record how long an answer took, and that the other replica has not answered for that long."""
        reads, now = self._context.reads, self._now()
        reads.budget.reads += self._measured_every
        if sent.late is None:
            if sent.bookie_id == bookie_id:
                reads.delays.record(bookie_id, ReadKind.SINGLE, now - sent.sent_at)
                reads.health.answered(bookie_id)
            return
        for read in (sent, sent.late):
            reads.delays.record(read.bookie_id, ReadKind.SINGLE, now - read.sent_at)

    def _hedge_at(self, moment: float) -> None:
        self._hedge = self._context.host.clock.call_at(moment, self._hedge_overdue)

    def _stop_hedging(self, _: object) -> None:
        if self._hedge is not None:
            self._hedge.cancel()

    def _hedge_overdue(self) -> None:
        """Read overdue single entries from the next replica as well, the oldest first; batches do so by themselves."""
        self._hedge = None
        if self.future.done():
            return
        now, reads = self._now(), self._context.reads
        delay_s = reads.delays.delay_s(ReadKind.SINGLE)
        due = float("inf")
        for entry_id, sent in list(self._on_the_way.items()):
            waited_s = now - sent.sent_at
            if waited_s + TIMER_ERROR_S < delay_s:
                due = min(due, sent.sent_at + delay_s)
                break
            plan = self._plan_of(entry_id, sent.bookie_id)
            if reads.is_due(sent.bookie_id, waited_s, has_other=plan.has_untried):
                following = plan.next_replica()
                assert following is not None
                del self._on_the_way[entry_id]
                self._request(entry_id, following, sent)
            elif not reads.is_silent(waited_s):
                due = min(due, sent.sent_at + reads.limit_s, now + delay_s if plan.has_untried else due)
        if due < float("inf") and self._hedge is None:
            self._hedge_at(max(due, now + LEAST_DELAY_S))

    def _fail_read(self, plan: ReadPlan) -> None:
        """No replica delivered the entry. It does not exist only if every replica denied it."""
        entry, report = f"entry {plan.entry_id} of ledger {self._codec.ledger_id}", plan.report()
        if self._unconfirmed and plan.is_absent:
            self._fail(NoSuchEntry(f"{entry} does not exist: {report}"))
        else:
            self._fail(ReadFailed(f"no replica delivered {entry}: {report}"))

    def _fail(self, error: TriplicateError) -> None:
        if isinstance(error, ReadFailed | NoSuchEntry):
            error.ledger_id = self._codec.ledger_id
        fail(self.future, error)


class BegunRead(NamedTuple):
    """A read of a range that is in flight, and the version of the metadata that it goes by."""

    first_entry_id: int
    last_entry_id: int
    version: int
    reading: RangeRead

    def cancel(self) -> None:
        """Drop the read and its entries."""
        self.reading.future.cancel()
