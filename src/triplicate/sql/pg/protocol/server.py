"""The PostgreSQL server of a database node."""

from __future__ import annotations

from triplicate.runtime import Host, Listener, Metrics
from triplicate.sql.core.interface import Databases
from triplicate.sql.pg.protocol.client_connections import ClientConnections, ServerLimits
from triplicate.sql.pg.protocol.server_security import ServerSecurity


class PostgresServer:
    """Serves every database of a node on one port. Created by `open`."""

    def __init__(self, listener: Listener, connections: ClientConnections) -> None:
        self._listener = listener
        self._connections = connections

    @classmethod
    async def open(
        cls,
        host: Host,
        databases: Databases,
        address: tuple[str, int],
        limits: ServerLimits | None = None,
        *,
        security: ServerSecurity | None = None,
        metrics: Metrics | None = None,
    ) -> PostgresServer:
        """Listen, and serve every connection until `stop`.

        Args:
            host: the ports to the outside.
            databases: clients connect to one of them by ``dbname``.
            address: host and port to listen on; port 0 selects a free one.
            limits: None for the defaults.
            security: what is demanded of clients; None for nothing.

        Raises:
            OSError: the port is in use, or the address is invalid.
        """
        connections = ClientConnections(host, databases, limits or ServerLimits(), security or ServerSecurity(), metrics)
        return cls(await host.network.listen(connections.new_stream, *address), connections)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that the server listens on."""
        return self._listener.address

    @property
    def connections(self) -> ClientConnections:
        return self._connections

    async def stop(self) -> None:
        """Stop listening and close every connection: with 57P01, or with 08007 where a statement runs."""
        await self._listener.close()
        await self._connections.aclose()
