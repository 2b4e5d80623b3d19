"""The server of a node's key-value stores for clients of Redis."""

from __future__ import annotations

from triplicate.kv.core.store_interface import KeyValueStores
from triplicate.kv.resp.resp_connections import RespConnections, RespLimits
from triplicate.kv.resp.resp_security import RespSecurity
from triplicate.runtime import Host, Listener, Metrics


class RespServer:
    """Serves every store of a node on one port. Created by `open`."""

    def __init__(self, listener: Listener, connections: RespConnections) -> None:
        self._listener = listener
        self._connections = connections

    @classmethod
    async def open(
        cls,
        host: Host,
        stores: KeyValueStores,
        address: tuple[str, int],
        *,
        default_store: str = "",
        limits: RespLimits | None = None,
        security: RespSecurity | None = None,
        metrics: Metrics | None = None,
    ) -> RespServer:
        """Listen, and serve every connection until `stop`.

        Args:
            stores: clients choose one of them by AUTH or HELLO.
            address: host and port to listen on; port 0 selects a free one.
            default_store: of clients that choose none; empty: the only store, if there is exactly one.
            limits: None for the defaults.
            security: what is demanded of clients; None for nothing.

        Raises:
            OSError: the port is in use, or the address is invalid.
        """
        connections = RespConnections(host, stores, default_store, limits or RespLimits(), security or RespSecurity(), metrics)
        return cls(await host.network.listen(connections.new_stream, *address), connections)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that the server listens on."""
        return self._listener.address

    @property
    def connections(self) -> RespConnections:
        return self._connections

    async def stop(self) -> None:
        """Stop listening and close every connection."""
        await self._listener.close()
        await self._connections.aclose()
