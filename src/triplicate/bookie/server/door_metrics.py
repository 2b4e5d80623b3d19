"""Metrics of a bookie's door: handshakes, logins, refusals. Counted per connection, and per chunk where rights are missing."""

from __future__ import annotations

from triplicate.runtime import Metrics


class DoorMetrics:
    """The names are ours: BookKeeper counts none of these at its bookies."""

    def __init__(self, metrics: Metrics | None) -> None:
        registry = metrics if metrics is not None else Metrics()
        counter, gauge = registry.counter, registry.gauge
        self.handshakes = counter("triplicate_bookie_tls_handshakes", "TLS handshakes of clients, by outcome.", ("outcome",))
        self.logins = counter("triplicate_bookie_logins", "Clients that proved who they are, by mechanism.", ("mechanism",))
        self.refused_logins = counter("triplicate_bookie_refused_logins", "Clients that were not admitted, by reason.", ("reason",))
        self.refused_requests = counter("triplicate_bookie_refused_requests", "Requests refused for want of a right, by right.", ("right",))
        self.half_open = gauge("triplicate_bookie_unauthenticated_connections", "Open connections that are not admitted yet.")
