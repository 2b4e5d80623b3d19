"""The last-add-confirmed of an idle writer, told to bookies by itself, since no later add carries it.

Source: BookKeeper `ExplicitLacFlushPolicy`, `PendingWriteLacOp`.
"""

from __future__ import annotations

from typing import Protocol

from triplicate.client.context import ClientContext
from triplicate.errors import BookieError, HandleClosed
from triplicate.ledger import EntryCodec, LedgerMetadata, write_set
from triplicate.runtime import Timer
from triplicate.wire import Response, Status, WriteLacRequest


class Confirming(Protocol):
    """What this needs of a writer."""

    ledger_id: int
    last_add_confirmed: int
    metadata: LedgerMetadata

    @property
    def ensemble(self) -> tuple[str, ...]: ...


class ExplicitLacUpdater:
    """One timer while something is to be told, none while everything is told or carried by adds. Best effort: a write that does not
    reach an ack quorum is tried again after the interval.

    Args:
        adds: whose last-add-confirmed it is.
    """

    def __init__(self, context: ClientContext, codec: EntryCodec, adds: Confirming) -> None:
        self._context = context
        self._codec = codec
        self._adds = adds
        self._interval_s = context.settings.explicit_lac_interval_s
        self._timer: Timer | None = None
        self._stopped = False
        self._told = -1
        """What readers can learn from bookies, as far as is known here."""
        self._carried = -1
        """What adds told in passing; an add carries at most what was confirmed before the one that it confirms."""

    def moved(self, before: int) -> None:
        """The last-add-confirmed moved; `before` is what it was."""
        self._carried = before
        self._arm()

    def stop(self) -> None:
        """Tell nothing more. Idempotent."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is None and not self._stopped:
            clock = self._context.host.clock
            self._timer = clock.call_at(clock.monotonic() + self._interval_s, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._told < self._carried:
            self._told = self._carried  # Adds flow and carry it: an extra request would tell nothing new.
            self._arm()
        elif self._told < self._adds.last_add_confirmed:
            self._tell(self._adds.last_add_confirmed)

    def _tell(self, last_add_confirmed: int) -> None:
        adds, metadata, codec = self._adds, self._adds.metadata, self._codec
        request = WriteLacRequest(adds.ledger_id, last_add_confirmed, codec.master_key, codec.encode_lac(last_add_confirmed))
        positions = write_set(last_add_confirmed, metadata.ensemble_size, metadata.write_quorum)
        answers: dict[int, bool] = {}

        def answered(position: int, response: Response | None, error: BookieError | None) -> None:
            answers[position] = response is not None and response.status == Status.OK
            if sum(answers.values()) >= metadata.ack_quorum:
                self._told = max(self._told, last_add_confirmed)
            elif len(answers) == len(positions):
                self._arm()

        try:
            for position in positions:
                self._context.pool.v3_channel(adds.ensemble[position]).call(request, answered, position)
        except HandleClosed:
            self.stop()
