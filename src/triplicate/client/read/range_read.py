"""Reading entries from their replicas: many at a time, each from the next replica when one fails or is slow.

Source: BookKeeper `PendingReadOp`, `BatchedReadOp`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from triplicate.client.connection.response_errors import EXPLICIT_NEGATIVES, error_for_status
from triplicate.client.context import ClientContext
from triplicate.client.read.batch_read import BatchRead, BatchSupport
from triplicate.errors import BookieError, DigestMismatch, HandleClosed, NoSuchEntry, ReadFailed, TriplicateError
from triplicate.ledger import Entry, EntryCodec, LedgerMetadata, ReadPlan, write_sets
from triplicate.runtime import Timer, fail, resolve
from triplicate.wire import ReadResponse, Status

FIRST_GUESS_BYTES = 4096
"""Size of an entry as long as none has been seen."""

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
    """The latest read of a single entry."""

    bookie_id: str
    sent_at: float


class FirstReplicas:
    """The first of `replicas_of` for each entry, from a table that holds for one segment at a time."""

    def __init__(self, metadata: LedgerMetadata, slow_last: Callable[[list[str]], list[str]]) -> None:
        self._metadata = metadata
        self._slow_last = slow_last
        self._segment = range(0)
        self._replicas: list[str] = []
        """Of the entries of `_segment`, by entry id modulo their number."""

    def of(self, entry_id: int) -> str:
        if entry_id not in self._segment:
            ensemble = self._metadata.ensemble_of(entry_id)
            sets = write_sets(len(ensemble), self._metadata.write_quorum)
            self._replicas = [self._slow_last([ensemble[position] for position in positions])[0] for positions in sets]
            self._segment = range(self._metadata.segment_of(entry_id).first_entry_id, segment_end(self._metadata, entry_id))
        return self._replicas[entry_id % len(self._replicas)]

    def slow_changed(self) -> None:
        """Make the table again: another bookie is slow now."""
        self._segment = range(0)


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

    Each entry is read from the first replica of its write set; a `ReadPlan` is made only for an entry that fails there. Where batches
    are possible, they are read instead, and entries that a batch omits are read again. Both the entries and the bytes in flight are
    bounded; bytes are estimated by the average entry so far, and known exactly for batches.

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
        self._first_replicas = FirstReplicas(metadata, context.slow_last)
        self._batches_out = 0
        self._plans: dict[int, ReadPlan] = {}
        self._failed: dict[str, None] = {}
        self._on_the_way: dict[int, SentRead] = {}
        """By entry; batches are not in it."""
        self._hedge: Timer | None = None
        self._now = context.host.clock.monotonic
        if context.hedge_s < float("inf"):
            self._hedge_later(context.hedge_s)
            self.future.add_done_callback(self._stop_hedging)
        self._pump()

    def _window(self, batches: int = 1) -> int:
        """Entries that may be in flight, if this many batches share the bytes."""
        settings = self._context.settings
        return max(1, min(settings.read_window_entries, settings.read_window_bytes // batches // self.delivered.average_bytes))

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
        settings = self._context.settings
        replicas = self._context.slow_last(replicas_of(self._metadata, first))
        # Stable: otherwise the order of the write set, which spreads the batches over the bookies.
        replicas.sort(key=lambda bookie_id: (bookie_id in self._failed, bookie_id != preferred))
        max_bytes = min(settings.frame_limit_bytes, settings.read_window_bytes // BATCHES_AT_A_TIME)
        self._batches_out += 1
        BatchRead(self._context, self._codec, first, stop - first, max_bytes, replicas, self._batch_done, self._is_wanted)

    def _is_wanted(self) -> bool:
        return not self.future.done()

    def _batch_done(self, batch: BatchRead) -> None:
        self._batches_out -= 1
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

    def _request(self, entry_id: int, bookie_id: str) -> None:
        try:
            channel = self._context.pool.channel(bookie_id)
        except HandleClosed as closed:
            self._fail(closed)
            return
        self._on_the_way[entry_id] = SentRead(bookie_id, self._now())
        channel.read(self._codec.ledger_id, entry_id, self._answered, (entry_id, bookie_id))

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
                self._try_next(entry_id, bookie_id, str(mismatch))
            else:
                self._plans.pop(entry_id, None)
                self._on_the_way.pop(entry_id, None)
                if response.max_lac is not None:
                    # Not where the copy is damaged: the bookie may have this number from the same damaged bytes.
                    self.max_lac = max(self.max_lac, response.max_lac)
                self._deliver(entry_id, (entry,), len(entry.payload))
        elif response is not None and response.status in EXPLICIT_NEGATIVES:
            self._try_next(entry_id, bookie_id, None)
        else:
            status = response.status if response is not None else Status.IO_ERROR
            refusal = error or error_for_status(status, bookie_id, self._codec.ledger_id, f"read of entry {entry_id}")
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

    def _plan_of(self, entry_id: int, asked: str) -> ReadPlan:
        """The plan of an entry; made when the read from its first replica fails."""
        plan = self._plans.get(entry_id)
        if plan is None:
            replicas = sorted(replicas_of(self._metadata, entry_id), key=lambda bookie_id: bookie_id != asked)
            plan = self._plans[entry_id] = ReadPlan(entry_id, replicas, len(replicas))
            plan.next_replica()
        return plan

    # Slow replicas.

    def _hedge_later(self, pause_s: float) -> None:
        self._hedge = self._context.host.clock.call_at(self._now() + pause_s, self._hedge_overdue)

    def _stop_hedging(self, _: object) -> None:
        if self._hedge is not None:
            self._hedge.cancel()

    def _hedge_overdue(self) -> None:
        """Read every overdue single entry from the next replica as well; batches do so by themselves."""
        if self.future.done():
            return
        now, context = self._now(), self._context
        for entry_id, (bookie_id, sent_at) in list(self._on_the_way.items()):
            if sent_at + context.hedge_s > now:
                continue
            context.slow_bookies.add(bookie_id, now)
            self._first_replicas.slow_changed()
            following = self._plan_of(entry_id, bookie_id).next_replica()
            if following is not None:
                self._request(entry_id, following)
        self._hedge_later(context.hedge_s / 2)

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
