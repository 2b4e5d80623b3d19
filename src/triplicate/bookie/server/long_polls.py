"""Long polls: reads that wait until a ledger's last-add-confirmed passes the one known to the reader. Source: BookKeeper
`LongPollReadEntryProcessorV3`.

A poll waits at its ledger's handle, which calls back when the last-add-confirmed advances (by an entry or an explicit record), and when
the ledger is fenced or deleted. It ends with its timeout, or with its connection. Woken polls are answered in a loop iteration of their
own, so that readers do not delay the writer. The number of polls is bounded, per connection and in total.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.bookie.core.ledger_table import LedgerHandle
from triplicate.bookie.server.read_processor import ReadProcessor
from triplicate.bookie.server.request_context import Peer, RequestContext
from triplicate.config import BookieSettings
from triplicate.runtime import Clock, Timer
from triplicate.wire import ReadRequest, Status


@dataclass(slots=True, eq=False)
class _WaitingPoll:
    context: RequestContext
    previous_lac: int
    timer: Timer | None = None


class LongPolls:
    """See the module's text."""

    def __init__(self, clock: Clock, reads: ReadProcessor, settings: BookieSettings, metrics: BookieMetrics) -> None:
        self._clock = clock
        self._reads = reads
        self._settings = settings
        self._of_ledger: dict[int, dict[int, _WaitingPoll]] = {}
        self._of_peer: dict[int, dict[int, _WaitingPoll]] = {}
        self._count = 0
        self._woken: dict[int, int | None] = {}
        """Ledgers whose polls must be checked, with the time when the last-add-confirmed advanced (None: it may not have)."""
        metrics.long_polls.set_function(lambda: self._count)

    @property
    def count(self) -> int:
        """Number of waiting polls."""
        return self._count

    def admit(self, context: RequestContext, request: ReadRequest) -> None:
        """Answer a read that has a previous last-add-confirmed, now or when there is something new."""
        handle = context.ledger
        previous_lac, timeout_ms = request.previous_lac, request.timeout_ms
        assert previous_lac is not None, "its presence is what makes a read a long poll"
        never_notified = not handle.exists or handle.limbo or handle.lac_unreadable
        if never_notified or timeout_ms is None or timeout_ms <= 0 or handle.max_lac > previous_lac:
            self._reads.serve(context)
        elif self._count >= self._settings.long_polls_outstanding or (
            len(self._of_peer.get(id(context.peer), ())) >= self._settings.long_polls_per_connection
        ):
            context.refuse(Status.TOO_MANY_REQUESTS)
        else:
            self._park(context, handle, previous_lac, min(timeout_ms / 1000, self._settings.long_poll_wait_s))

    def _park(self, context: RequestContext, handle: LedgerHandle, previous_lac: int, wait_s: float) -> None:
        parked = _WaitingPoll(context, previous_lac)
        parked.timer = self._clock.call_at(self._clock.monotonic() + wait_s, self._expire, parked)
        self._of_ledger.setdefault(handle.ledger_id, {})[id(parked)] = parked
        self._of_peer.setdefault(id(context.peer), {})[id(parked)] = parked
        self._count += 1
        handle.wake = partial(self._wake, handle.ledger_id)

    def _unpark(self, parked: _WaitingPoll) -> None:
        handle = parked.context.ledger
        for places, key in ((self._of_ledger, handle.ledger_id), (self._of_peer, id(parked.context.peer))):
            here = places[key]
            del here[id(parked)]
            if not here:
                del places[key]
        if handle.ledger_id not in self._of_ledger:
            handle.wake = None
        self._count -= 1
        if parked.timer is not None:
            parked.timer.cancel()

    def _expire(self, parked: _WaitingPoll) -> None:
        self._unpark(parked)
        self._reads.serve(parked.context)

    def _wake(self, ledger_id: int, advanced: bool) -> None:
        if not self._woken:
            self._clock.call_at(self._clock.monotonic(), self._answer_woken)
        if not advanced:
            self._woken[ledger_id] = None
        elif ledger_id not in self._woken:
            self._woken[ledger_id] = self._clock.wall_us() // 1000

    def _answer_woken(self) -> None:
        woken, self._woken = self._woken, {}
        for ledger_id, advanced_ms in woken.items():
            for parked in list(self._of_ledger.get(ledger_id, {}).values()):
                if advanced_ms is None or parked.context.ledger.max_lac > parked.previous_lac:
                    self._unpark(parked)
                    parked.context.lac_update_ms = advanced_ms
                    self._reads.serve(parked.context)

    def forget(self, peer: Peer) -> None:
        """The connection is gone."""
        for parked in list(self._of_peer.get(id(peer), {}).values()):
            self._unpark(parked)
