"""The state that the reads of one client share: the delays and the budget of hedged reads, and the health of the bookies.

With ``hedge_read_s = 0`` nothing of it is on but the preference of near bookies: no read is sent twice, and health does not count.

Source: BookKeeper `DefaultSpeculativeRequestExecutionPolicy`, `RackawareEnsemblePlacementPolicyImpl.registerSlowBookie`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from triplicate.client.client_metrics import ClientMetrics
from triplicate.client.connection.pool import ChannelPool
from triplicate.client.connection.response_errors import EXPLICIT_NEGATIVES
from triplicate.config import ClientSettings
from triplicate.errors import BookieError
from triplicate.ledger import Ailment, BookieHealth, Distance, HedgeBudget, HedgeDelays, ReadKind, ReadOrder
from triplicate.runtime import Host
from triplicate.wire import ReadResponse, Status

PROBE_DELAYS = 4.0
"""A probe is answered in time within this many delays of hedged reads."""
PROBE_LEAST_S = 0.05
"""A probe may take this long in any case, since it may have to connect first. In seconds."""

TIMER_ERROR_S = 0.000001
"""A timer may be this early, since it computes with other sums."""


class _Probe(NamedTuple):
    bookie_id: str
    sent_at: float


class HedgedReads:
    """See the module's text. Made by `Client`."""

    def __init__(self, host: Host, settings: ClientSettings, pool: ChannelPool, metrics: ClientMetrics) -> None:
        self.limit_s = settings.hedge_read_s or float("inf")
        """A bookie that does not answer within this time, in seconds, is slow; infinite when hedging is off."""
        self.is_on = self.limit_s < float("inf")
        self.delays = HedgeDelays(self.limit_s, settings.hedge_read_quantile)
        self.budget = HedgeBudget(settings.hedge_read_share)
        self.health = BookieHealth(settings.quarantine_first_s, settings.quarantine_maximum_s)
        self.order = ReadOrder(self.health)
        """In which replicas are read; `NearBookies` states the distances."""
        self._host = host
        self._wire = settings.wire
        self._pool = pool
        self._now = host.clock.monotonic
        self._quarantines = metrics.quarantines
        self._late = metrics.speculative_reads.labels(reason="late")
        self._silent = metrics.speculative_reads.labels(reason="silent")
        self._sent = [metrics.reads_by_distance.labels(distance=distance.name.lower()) for distance in Distance]
        self._probes = metrics.speculative_reads.labels(reason="probe")

    def note_sent(self, bookie_id: str) -> None:
        """Count a read by the distance of its bookie, if distances are known."""
        if self.order.has_distances:
            self._sent[self.order.distance(bookie_id)].inc()

    def is_silent(self, waited_s: float) -> bool:
        """Whether a bookie that has not answered for `waited_s` seconds is slow. Then a read of it needs no timer any more."""
        return waited_s + TIMER_ERROR_S >= self.limit_s

    def is_due(self, bookie_id: str, waited_s: float, *, has_other: bool) -> bool:
        """Whether another replica is to be read as well; then this counts as done.

        Args:
            bookie_id: has not answered for `waited_s` seconds, at least the delay of this kind of read.
            has_other: a replica is left that was not read from.
        """
        now = self._now()
        if self.is_silent(waited_s):
            self.note_silence(bookie_id, now)
            if has_other:
                self.budget.spend()
                self._silent.inc()
                self._trace(bookie_id, "silent")
            return has_other
        if self.health.strike(bookie_id, Ailment.SLOW, now):
            self._report(bookie_id, Ailment.SLOW)
        if has_other and self.budget.try_spend():
            self._late.inc()
            self._trace(bookie_id, "late")
            return True
        return False

    def note_silence(self, bookie_id: str, now: float) -> None:
        """A bookie left a read, or a fence, unanswered for `limit_s`."""
        if self.is_on and self.health.quarantine(bookie_id, Ailment.SLOW, now):
            self._report(bookie_id, Ailment.SLOW)

    def note_failure(self, bookie_id: str, error: BookieError | None) -> None:
        """A read failed: without an answer for the reason `error`, or, if that is None, by a refusal that says nothing of the entry."""
        if not self.is_on or self._pool.is_closed:
            return
        note = self.health.strike if error is None else self.health.quarantine
        if note(bookie_id, Ailment.FAILING, self._now()):
            self._report(bookie_id, Ailment.FAILING)

    def probe(self, ledger_id: int, entry_id: int, replicas: Sequence[str]) -> None:
        """Probe a replica that is in quarantine, if one is due, by this entry, which another replica delivers."""
        now = self._now()
        bookie_id = self.health.begin_probe(replicas, now)
        if bookie_id is not None:
            self.budget.spend()
            self._probes.inc()
            self._trace(bookie_id, "probe")
            self._pool.channel(bookie_id).read(ledger_id, entry_id, self._probe_ended, _Probe(bookie_id, now))

    def _probe_ended(self, probe: _Probe, response: ReadResponse | None, error: BookieError | None) -> None:
        now = self._now()
        limit_s = min(self.limit_s, max(PROBE_LEAST_S, PROBE_DELAYS * self.delays.delay_s(ReadKind.SINGLE)))
        if response is None or not (response.status is Status.OK or response.status in EXPLICIT_NEGATIVES):
            ailment: Ailment | None = Ailment.FAILING
        else:
            ailment = Ailment.SLOW if now - probe.sent_at > limit_s else None
        if self.health.end_probe(probe.bookie_id, ailment, now):
            self._host.trace("client.bookie_readmitted", bookie=probe.bookie_id)

    def _trace(self, bookie_id: str, reason: str) -> None:
        """Record an additional read: of which bookie, and how many reads and additional ones the budget has counted."""
        budget = self.budget
        self._host.trace("client.read_hedged", bookie=bookie_id, reason=reason, wire=self._wire, reads=budget.reads, spent=budget.spent)

    def _report(self, bookie_id: str, ailment: Ailment) -> None:
        self._quarantines.labels(bookie=bookie_id, reason=ailment.name.lower()).inc()
        self._host.trace("client.bookie_quarantined", bookie=bookie_id, reason=ailment.name.lower())
