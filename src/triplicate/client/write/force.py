"""One call of force: every bookie of the ensemble syncs what it accepted, or the call fails. Source: BookKeeper `ForceLedgerOp`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from triplicate.client.connection.response_errors import error_for_status
from triplicate.client.context import ClientContext
from triplicate.errors import BookieError, TriplicateError
from triplicate.wire import ForceRequest, ForceResponse, Response, Status


class Force:
    """Asks all bookies at once. An ack quorum is not enough: nobody knows on which bookies the acknowledged copies are not synced.

    Args:
        ended: called once, when the last bookie has synced or the first has failed (`error`); it settles the future.
    """

    def __init__(self, context: ClientContext, ledger_id: int, ensemble: Sequence[str], ended: Callable[[Force], None]) -> None:
        self.future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.error: TriplicateError | None = None
        self._ledger_id = ledger_id
        self._ended: Callable[[Force], None] | None = ended
        self._missing: dict[str, None] = dict.fromkeys(ensemble)
        for bookie_id in ensemble:
            context.pool.v3_channel(bookie_id).call(ForceRequest(ledger_id), self._answered, bookie_id)

    def give_up(self) -> None:
        """Ignore what still comes."""
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
