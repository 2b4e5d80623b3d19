"""Asking the last ensemble how far a ledger is confirmed."""

from __future__ import annotations

import asyncio

from triplicate.client.answers import EXPLICIT_NEGATIVES, error_of
from triplicate.client.pool import Services
from triplicate.errors import BookieError, DigestMismatch, ReadFailed, Unauthorized
from triplicate.ledger import EntryCodec, LastConfirmed, LedgerMetadata
from triplicate.wire import LAST_ENTRY, ReadResponse, Status


class LacRead:
    """Reads the last entry of every bookie of the last ensemble and resolves to the last-add-confirmed once they cover it.

    Never fences. Raises (through the future) ReadFailed when coverage cannot be reached, naming the bookies that are unknown.
    """

    def __init__(self, services: Services, metadata: LedgerMetadata, codec: EntryCodec) -> None:
        self.future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._services = services
        self._codec = codec
        ensemble = metadata.last_segment.ensemble
        self._answers = LastConfirmed(ensemble, metadata.write_quorum, metadata.ack_quorum)
        # Everything before the last segment is confirmed, or the segment could not have been started.
        self._floor = metadata.last_segment.first_entry_id - 1
        for position, bookie_id in enumerate(ensemble):
            services.pool.channel(bookie_id).read(codec.ledger_id, LAST_ENTRY, self._answered, (position, bookie_id))

    def _answered(self, token: tuple[int, str], response: ReadResponse | None, error: BookieError | None) -> None:
        position, bookie_id = token
        if self.future.done():
            return
        answers = self._answers
        if response is None:
            answers.failed(position, str(error))
        elif response.status == Status.OK and response.body is not None:
            try:
                entry = self._codec.decode(response.body)
            except DigestMismatch as mismatch:
                self._services.metrics.digest_mismatches.labels(bookie=bookie_id).inc()
                answers.failed(position, str(mismatch))
            else:
                answers.answered(position, entry.entry_id, entry.last_add_confirmed, entry.length)
        elif response.status in EXPLICIT_NEGATIVES:
            answers.nothing_there(position)
        else:
            refusal = error_of(response.status, bookie_id, self._codec.ledger_id, "read of the last entry")
            if isinstance(refusal, Unauthorized):
                self.future.set_exception(refusal)
                return
            answers.failed(position, str(refusal))
        self._conclude()

    def _conclude(self) -> None:
        if self._answers.is_covered:
            self.future.set_result(max(self._answers.last_add_confirmed, self._floor))
        elif self._answers.is_exhausted:
            failure = ReadFailed(
                f"the last-add-confirmed of ledger {self._codec.ledger_id} cannot be told: too many bookies are unknown, "
                f"namely {self._answers.missing()}"
            )
            failure.ledger_id = self._codec.ledger_id
            self.future.set_exception(failure)
