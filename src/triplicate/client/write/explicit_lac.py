"""The last-add-confirmed of an idle writer, sent to bookies in a request of its own because no later add carries it.

Source: BookKeeper `ExplicitLacFlushPolicy`, `PendingWriteLacOp`.
"""

from __future__ import annotations

from triplicate.client.context import ClientContext
from triplicate.client.write.add_streams import Tracker
from triplicate.errors import BookieError, HandleClosed
from triplicate.ledger import EntryCodec, LedgerMetadata, write_set
from triplicate.runtime import Timer
from triplicate.wire import Response, Status, WriteLacRequest


class ExplicitLacUpdater:
    """Belongs to one writer. It runs one timer while a last-add-confirmed is unsent, and none otherwise.

    Best effort: a write that does not reach an ack quorum is tried again after the interval.

    Args:
        metadata: for the quorums. tracker: for the present ensemble.
    """

    def __init__(self, context: ClientContext, codec: EntryCodec, metadata: LedgerMetadata, tracker: Tracker) -> None:
        self._context = context
        self._codec = codec
        self._metadata = metadata
        self._tracker = tracker
        self._interval_s = context.settings.explicit_lac_interval_s
        self._timer: Timer | None = None
        self._stopped = False
        self._last_add_confirmed = -1
        self._sent = -1
        """The greatest last-add-confirmed that the bookies have, as far as this writer knows."""
        self._piggybacked = -1
        """The greatest last-add-confirmed that adds have carried; an add never carries one that includes itself."""

    def lac_advanced(self, before: int, last_add_confirmed: int) -> None:
        """The last-add-confirmed moved on from `before`."""
        self._piggybacked = before
        self._last_add_confirmed = last_add_confirmed
        self._arm()

    def stop(self) -> None:
        """Send nothing more. Idempotent."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is None and not self._stopped:
            clock = self._context.host.clock
            self._timer = clock.call_at(clock.monotonic() + self._interval_s, self._interval_over)

    def _interval_over(self) -> None:
        self._timer = None
        if self._sent < self._piggybacked:
            self._sent = self._piggybacked  # Adds carry it: an extra request would say nothing new.
            self._arm()
        elif self._sent < self._last_add_confirmed:
            self._send(self._last_add_confirmed)

    def _send(self, last_add_confirmed: int) -> None:
        metadata, codec = self._metadata, self._codec
        request = WriteLacRequest(codec.ledger_id, last_add_confirmed, codec.master_key, codec.encode_lac(last_add_confirmed))
        positions = write_set(last_add_confirmed, metadata.ensemble_size, metadata.write_quorum)
        answers: dict[int, bool] = {}

        def answered(position: int, response: Response | None, error: BookieError | None) -> None:
            answers[position] = response is not None and response.status == Status.OK
            if sum(answers.values()) >= metadata.ack_quorum:
                self._sent = max(self._sent, last_add_confirmed)
            elif len(answers) == len(positions):
                self._arm()

        try:
            for position in positions:
                self._context.pool.v3_channel(self._tracker.ensemble[position]).call(request, answered, position)
        except HandleClosed:
            self.stop()
