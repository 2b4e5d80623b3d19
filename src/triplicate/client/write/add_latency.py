"""The time from the sending of entries to their confirmation, for the client's metrics."""

from __future__ import annotations

from heapq import heappop, heappush

from triplicate.client.client_metrics import ClientMetrics
from triplicate.client.connection.bookie_channel import InFlight
from triplicate.client.connection.flush_scheduler import FlushScheduler
from triplicate.runtime import Clock


class AddLatency:
    """Belongs to one writer. It observes each batch of adds once."""

    __slots__ = ("_clock", "_metrics", "_scheduler", "_sent")

    def __init__(self, metrics: ClientMetrics, scheduler: FlushScheduler, clock: Clock) -> None:
        self._metrics = metrics
        self._scheduler = scheduler
        self._clock = clock
        self._sent: list[tuple[int, float]] = []
        """(last entry id, time) of each batch that is not confirmed; a heap, since ids of the caller's choice need not ascend."""

    def begin(self, last_entry_id: int, in_flight: InFlight) -> None:
        """A batch was sent."""
        heappush(self._sent, (last_entry_id, in_flight.sent_at))

    def confirm(self, last_add_confirmed: int, entries: int, size_bytes: int) -> None:
        """Count entries that are confirmed; `size_bytes` is that of their frames."""
        metrics, sent = self._metrics, self._sent
        metrics.added.value += entries
        metrics.added_bytes.value += size_bytes
        if sent and sent[0][0] <= last_add_confirmed:
            # While answers are processed, the time of their arrival saves one read of the clock per ledger.
            now = self._scheduler.received_at or self._clock.monotonic()
            while sent and sent[0][0] <= last_add_confirmed:
                metrics.add_seconds.observe(now - heappop(sent)[1])
