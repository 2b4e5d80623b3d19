"""Reading entries from their replicas: many at a time, each from the next replica when one fails."""

from __future__ import annotations

import asyncio

from triplicate.client.answers import EXPLICIT_NEGATIVES, error_of
from triplicate.client.pool import Services
from triplicate.errors import BookieError, DigestMismatch, HandleClosed, ReadFailed, TriplicateError
from triplicate.ledger import Entry, EntryCodec, LedgerMetadata, ReadPlan, write_sets
from triplicate.wire import ReadResponse, Status

FIRST_GUESS_BYTES = 4096
"""Size of an entry as long as none has been seen."""


class RangeRead:
    """One reading of entries `first` to `last`.

    Each entry is asked of the first replica of its write set; a plan is made only for those that fail there. How many are on the
    way is bounded by entries and by bytes, the latter reckoned by the average entry so far.
    """

    def __init__(self, services: Services, metadata: LedgerMetadata, codec: EntryCodec, first: int, last: int) -> None:
        self.future: asyncio.Future[list[Entry]] = asyncio.get_running_loop().create_future()
        self._services = services
        self._metadata = metadata
        self._codec = codec
        self._first = first
        self._last = last
        self._next = first
        self._results: list[Entry | None] = [None] * (last - first + 1)
        self._missing = last - first + 1
        self._outstanding = 0
        self._received = 0
        self._received_bytes = 0
        self._plans: dict[int, ReadPlan] = {}
        self._sets = write_sets(metadata.ensemble_size, metadata.write_quorum)
        self._pump()

    def _window(self) -> int:
        settings = self._services.settings
        average = self._received_bytes // self._received + 1 if self._received else FIRST_GUESS_BYTES
        return max(1, min(settings.read_window_entries, settings.read_window_bytes // average))

    def _pump(self) -> None:
        window = self._window()
        while self._next <= self._last and self._outstanding < window and not self.future.done():
            entry_id = self._next
            self._next += 1
            self._ask(entry_id, self._replicas(entry_id)[0])

    def _replicas(self, entry_id: int) -> list[str]:
        ensemble = self._metadata.ensemble_of(entry_id)
        return [ensemble[position] for position in self._sets[entry_id % len(ensemble)]]

    def _ask(self, entry_id: int, bookie_id: str) -> None:
        try:
            channel = self._services.pool.channel(bookie_id)
        except HandleClosed as closed:
            self._fail(closed)
            return
        self._outstanding += 1
        channel.read(self._codec.ledger_id, entry_id, self._answered, (entry_id, bookie_id))

    def _answered(self, token: tuple[int, str], response: ReadResponse | None, error: BookieError | None) -> None:
        entry_id, bookie_id = token
        self._outstanding -= 1
        if self.future.done():
            return
        if response is not None and response.status == Status.OK and response.body is not None:
            try:
                entry = self._codec.decode(response.body, entry_id)
            except DigestMismatch as mismatch:
                self._services.metrics.digest_mismatches.labels(bookie=bookie_id).inc()
                self._services.host.trace("client.digest_mismatch", ledger=self._codec.ledger_id, entry=entry_id, bookie=bookie_id)
                self._try_next(entry_id, bookie_id, str(mismatch))
            else:
                self._deliver(entry_id, entry)
        elif response is not None and response.status in EXPLICIT_NEGATIVES:
            self._try_next(entry_id, bookie_id, None)
        else:
            status = response.status if response is not None else Status.IO_ERROR
            refusal = error or error_of(status, bookie_id, self._codec.ledger_id, f"read of entry {entry_id}")
            self._try_next(entry_id, bookie_id, str(refusal))

    def _deliver(self, entry_id: int, entry: Entry) -> None:
        self._plans.pop(entry_id, None)
        self._results[entry_id - self._first] = entry
        self._missing -= 1
        self._received += 1
        self._received_bytes += len(entry.payload)
        if self._missing:
            self._pump()
        else:
            self.future.set_result([entry for entry in self._results if entry is not None])

    def _try_next(self, entry_id: int, bookie_id: str, failure: str | None) -> None:
        """A replica did not deliver.

        Args:
            failure: why; None for an explicit "no such entry".
        """
        plan = self._plans.get(entry_id)
        if plan is None:
            replicas = self._replicas(entry_id)
            plan = self._plans[entry_id] = ReadPlan(entry_id, replicas, len(replicas))
            plan.next_replica()
        if failure is None:
            plan.absent(bookie_id)
        else:
            plan.failed(bookie_id, failure)
        following = plan.next_replica()
        if following is not None:
            self._ask(entry_id, following)
        else:
            self._fail(ReadFailed(f"no replica delivered entry {entry_id} of ledger {self._codec.ledger_id}: {plan.report()}"))

    def _fail(self, error: TriplicateError) -> None:
        if isinstance(error, ReadFailed):
            error.ledger_id = self._codec.ledger_id
        if not self.future.done():
            self.future.set_exception(error)
