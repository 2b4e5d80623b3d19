"""Forces of one ledger: every bookie of the ensemble syncs what it accepted, or the force fails. Source: BookKeeper `ForceLedgerOp`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from triplicate.client.connection.response_errors import error_for_status
from triplicate.client.context import ClientContext
from triplicate.client.write.add_streams import EnsembleStreams
from triplicate.errors import BookieError, TriplicateError
from triplicate.wire import ForceRequest, ForceResponse, Response, Status


class Force:
    """One call. All bookies are asked at once; an ack quorum is not enough, since the acknowledged copies that are not synced may be on
    any of them.

    Args:
        ended: called once, when the last bookie has synced or the first has failed (`error`); it resolves the future.
    """

    def __init__(self, context: ClientContext, ledger_id: int, ensemble: Sequence[str], ended: Callable[[Force], None]) -> None:
        self.future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.error: TriplicateError | None = None
        self._ledger_id = ledger_id
        self._ended: Callable[[Force], None] | None = ended
        self._missing: dict[str, None] = dict.fromkeys(ensemble)
        for bookie_id in ensemble:
            context.pool.v3_channel(bookie_id).call(ForceRequest(ledger_id), self._answered, bookie_id)

    def cancel(self) -> None:
        """Ignore further answers."""
        self._ended = None

    def _answered(self, bookie_id: str, response: Response | None, error: BookieError | None) -> None:
        ended = self._ended
        if ended is None:
            return
        if isinstance(response, ForceResponse) and response.status == Status.OK:
            self._missing.pop(bookie_id, None)
        else:
            status = response.status if response is not None else Status.BAD_REQUEST
            self.error = error if error is not None else error_for_status(status, bookie_id, self._ledger_id, "force")
        if self.error is not None or not self._missing:
            self._ended = None
            ended(self)


class LedgerForces:
    """The forces of one writer, and the connections that were lost since its last one.

    Args:
        deferred_sync: bookies acknowledge before they sync. A bookie whose connection was lost may have restarted, and may have lost
            entries that it acknowledged and did not sync.
    """

    def __init__(self, context: ClientContext, ledger_id: int, streams: EnsembleStreams, *, deferred_sync: bool) -> None:
        self.deferred_sync = deferred_sync
        self._context = context
        self._ledger_id = ledger_id
        self._streams = streams
        self._in_flight: dict[int, Force] = {}
        self._losses: list[int] | None = None
        """Connections lost per bookie when the first unforced entry was sent; None while every entry is forced."""

    def __bool__(self) -> bool:
        """Whether a force is in flight."""
        return bool(self._in_flight)

    def begin(self, ensemble: Sequence[str], ended: Callable[[Force], None]) -> Force:
        """Ask all bookies of the ensemble to sync; see `Force`."""
        force = Force(self._context, self._ledger_id, ensemble, ended)
        self._in_flight[id(force)] = force
        return force

    def end(self, force: Force) -> None:
        """The force is over."""
        del self._in_flight[id(force)]

    def cancel_all(self) -> list[asyncio.Future[int]]:
        """Stop waiting for all forces; return their futures, for the caller to fail."""
        forces = list(self._in_flight.values())
        self._in_flight.clear()
        for force in forces:
            force.cancel()
        return [force.future for force in forces]

    def note_sent(self) -> None:
        """Entries were sent."""
        if self._losses is None:
            self._losses = self._streams.losses()

    def note_all_forced(self) -> None:
        """Every entry that was sent is forced."""
        self._losses = None

    @property
    def may_have_lost_entries(self) -> bool:
        """Whether a bookie may have restarted and lost entries that it acknowledged without syncing them."""
        return self.deferred_sync and self._losses is not None and self._losses != self._streams.losses()
