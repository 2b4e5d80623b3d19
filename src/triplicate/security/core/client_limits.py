"""The limits of a node's servers on the connections of their clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from triplicate.config.node_settings import NodeSettings
from triplicate.security.core.half_open import HalfOpenConnections

UNANSWERED_CONNECTIONS = 50
"""Half-open connections of one address beyond the limit of connections: probes of other nodes, and clients that learn of the limit."""


@dataclass(frozen=True)
class ClientLimits:
    """Limits of a server."""

    connections: int = 200
    login_s: float = 30.0
    """A connection is closed if its client has not logged in, or to a server without authentication sent a command, within this time."""
    half_open: int = 0
    """Connections whose clients have not done so yet; 0 for twice as many as one address may have."""
    half_open_per_address: int = 0
    """The same for one address; 0 for as many as are accepted, and `UNANSWERED_CONNECTIONS` more."""
    handshakes_per_s: int = 200
    """Maximum rate of TLS handshakes; further clients wait."""
    failed_logins: int = 20
    """Failed logins after which an address is refused for a time; 0 for no limit."""
    failed_login_s: float = 6.0
    """One failed login of an address is forgiven after this time, seconds."""
    client_stall_s: float = 60.0
    """A connection is closed if its client does not read, or leaves a request incomplete, for this time without any progress."""

    @classmethod
    def of_settings(cls, settings: NodeSettings, **more: int) -> Self:
        """The limits that the settings of a node give, and those of one kind of server only."""
        return cls(
            connections=settings.connections,
            login_s=settings.login_s,
            half_open=settings.half_open_connections,
            half_open_per_address=settings.half_open_per_address,
            handshakes_per_s=settings.handshakes_per_s,
            failed_logins=settings.failed_logins,
            failed_login_s=settings.failed_login_s,
            client_stall_s=settings.client_stall_s,
            **more,
        )

    def half_open_connections(self) -> HalfOpenConnections[int]:
        """The register that keeps the limits of half-open connections."""
        for_address = self.half_open_per_address or self.connections + UNANSWERED_CONNECTIONS
        return HalfOpenConnections(self.half_open or 2 * for_address, for_address)
