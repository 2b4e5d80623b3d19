"""Reading consecutive entries in one request, where every bookie of the ensemble has all of them.

The answer holds as many entries as the bookie found and the limits allow, at least one. A shorter answer
than requested says nothing about the other entries.
Source: BookKeeper `BatchedReadOp`, `BatchedReadEntryProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triplicate.client.connection.response_errors import EXPLICIT_NEGATIVES, error_for_status
from triplicate.client.context import ClientContext
from triplicate.errors import BookieError, ConnectionBroken, HandleClosed
from triplicate.ledger import Entry, EntryCodec, LedgerMetadata, ReadPlan, decode_entries, kind_of_batch
from triplicate.runtime import Timer, let_freed_memory_linger
from triplicate.wire import BatchAnswer, BatchReadRequest, Status

ANSWER_HEAD_BYTES = 4 + 32
"""Length and header of an answer; each entry has four bytes more."""


@dataclass(slots=True)
class BatchSupport:
    """Whether one handle may still send batch reads."""

    context: ClientContext
    refused: bool = False
    """A bookie closed the connection on a batch read, as those before BookKeeper 4.17 do: use single reads from now on."""

    def __post_init__(self) -> None:
        # Batches are allocated and freed in megabytes.
        let_freed_memory_linger()

    def fits(self, metadata: LedgerMetadata) -> bool:
        """Whether batches can be read of this ledger. Only version 2 has them, and only bookies that hold every entry serve them well."""
        whole = metadata.ensemble_size == metadata.write_quorum
        return whole and not self.refused and self.context.settings.batch_read and self.context.pool.wire == "v2"

    def refuse(self, bookie_id: str) -> None:
        """Record that a bookie does not support batch reads."""
        if not self.refused:
            self.context.host.trace("client.batch_read_refused", bookie=bookie_id)
        self.refused = True


class BatchRead:
    """Entries from `first` on: asks one replica after the other until one delivers the first of them, then calls `done` with itself. One
    that is slow is not waited for: the next is asked as well.

    Afterwards `entries` holds what was delivered, verified and in order; it is empty when `impossible` (a bookie knows no batches), when
    `closed` (the client was), or when every replica failed, which `plan` then reports.

    Args:
        replicas: in the order in which they are read.
        max_bytes: of the answer's frame; a single larger entry is delivered nevertheless.
        is_wanted: whether the result is still needed; if not, no further replica is read, and `done` is not called.
    """

    def __init__(
        self,
        context: ClientContext,
        codec: EntryCodec,
        first: int,
        count: int,
        max_bytes: int,
        replicas: Sequence[str],
        done: Callable[[BatchRead], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        self.first = first
        self.count = count
        self.entries: list[Entry] = []
        self.payload_bytes = 0
        """Of `entries` together."""
        self.bookie_id = ""
        """The bookie that answered last."""
        self.first_asked = replicas[0]
        self.impossible = False
        self.closed: HandleClosed | None = None
        self.plan = ReadPlan(first, replicas, len(replicas))
        self._context = context
        self._codec = codec
        self._done = done
        self._is_wanted = is_wanted
        # The channel assigns the request's number.
        self._request = BatchReadRequest(codec.ledger_id, first, 0, count, max(1, max_bytes - ANSWER_HEAD_BYTES))
        self._now = context.host.clock.monotonic
        self._is_over = False
        self._hedge: Timer | None = None
        self._kind = kind_of_batch(count)
        self._sent: dict[str, float] = {}
        """When each replica was read from."""
        context.reads.budget.reads += 1
        self._request_next()
        if not context.reads.health.is_sound and self.closed is None:
            context.reads.probe(codec.ledger_id, first, replicas)

    def _request_next(self) -> None:
        self._stop_hedging()
        if not self._is_wanted():
            self._is_over = True
            return
        following = self.plan.next_replica()
        if following is not None:
            try:
                self._context.pool.batch_channel(following).call(self._request, self._answered, following)
            except HandleClosed as closed:
                self.closed = closed
            else:
                self._sent[following] = self._now()
                self._context.reads.note_sent(following)
                self._hedge_later(self._context.reads.delays.delay_s(self._kind))
                return
        elif self.plan.awaited:
            return
        self._end()

    def _end(self) -> None:
        self._is_over = True
        self._stop_hedging()
        self._done(self)

    def _hedge_later(self, pause_s: float) -> None:
        if pause_s < float("inf"):
            self._hedge = self._context.host.clock.call_at(self._now() + pause_s, self._overdue)

    def _stop_hedging(self) -> None:
        if self._hedge is not None:
            self._hedge.cancel()
            self._hedge = None

    def _overdue(self) -> None:
        """No replica has answered in time."""
        reads, now = self._context.reads, self._now()
        bookie_id = self.plan.awaited[-1]
        waited_s = now - self._sent[bookie_id]
        if reads.is_due(bookie_id, waited_s, has_other=self.plan.has_untried):
            self._request_next()
        elif not reads.is_silent(waited_s):
            self._hedge_later(reads.limit_s - waited_s)

    def _answered(self, bookie_id: str, response: BatchAnswer | None, error: BookieError | None) -> None:
        if self._is_over:
            return  # Another replica was quicker.
        self.bookie_id = bookie_id
        if isinstance(error, ConnectionBroken) or (response is not None and response.status in (Status.BAD_REQUEST, Status.BAD_VERSION)):
            self.impossible = True
            self._end()
            return
        if response is not None and response.status is Status.OK:
            failure = self._process(response)
        elif response is not None and response.status in EXPLICIT_NEGATIVES:
            failure = None
        else:
            status = response.status if response is not None else Status.IO_ERROR
            failure = str(error or error_for_status(status, bookie_id, self._codec.ledger_id, f"read of entries from {self.first} on"))
        if self.entries:
            self._record(bookie_id)
            self._end()
            return
        if failure is not None:
            self._context.reads.note_failure(bookie_id, error)
        if failure is None:
            self.plan.absent(bookie_id)
        else:
            self.plan.failed(bookie_id, failure)
        self._request_next()

    def _record(self, bookie_id: str) -> None:
        """Measure the answer, and those that are still awaited by the time they have taken so far."""
        reads, now = self._context.reads, self._now()
        reads.delays.record(bookie_id, self._kind, now - self._sent[bookie_id])
        if self.plan.awaited == [bookie_id]:
            reads.health.answered(bookie_id)
            return
        for late in self.plan.awaited:
            if late != bookie_id:
                reads.delays.record(late, self._kind, now - self._sent[late])

    def _process(self, answer: BatchAnswer) -> str | None:
        """Keep the entries before the first damaged one, which another request will read. Returns the error if there are none."""
        codec = self._codec
        self.entries, self.payload_bytes, mismatch = decode_entries(codec, answer.data, answer.position, answer.end, self.first, self.count)
        if mismatch is not None:
            self._context.metrics.digest_mismatches.labels(bookie=self.bookie_id).inc()
            entry_id = self.first + len(self.entries)
            self._context.host.trace("client.digest_mismatch", ledger=codec.ledger_id, entry=entry_id, bookie=self.bookie_id)
            return str(mismatch)
        return None if self.entries else "it answered with no entry at all"
