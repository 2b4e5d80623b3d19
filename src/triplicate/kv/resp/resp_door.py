"""The port of a node for clients of Redis, as its settings say."""

from __future__ import annotations

from triplicate.config import NodeSettings, RespSettings
from triplicate.errors import EnvironmentFault
from triplicate.kv.core.store_interface import KeyValueStores
from triplicate.kv.resp.resp_connections import RespConnections, RespLimits
from triplicate.kv.resp.resp_security import RespSecurity
from triplicate.runtime import Host, Metrics
from triplicate.security import TlsIdentity


class RespDoor:
    """The port, open or not.

    Args:
        host: the ports to the outside.
        node: the limits of connections, the demands on clients.

    Raises (on creation):
        ConfigError: the port is to be served, and its demands cannot be kept or would be evaded.
    """

    def __init__(self, host: Host, node: NodeSettings, resp: RespSettings, identity: TlsIdentity | None) -> None:
        self._host = host
        self._node = node
        self._resp = resp
        self._security = RespSecurity.of_settings(host, node, resp, identity) if resp.serve else None
        self._server: RespConnections | None = None

    async def open(self, stores: KeyValueStores, metrics: Metrics | None) -> None:
        """Listen for clients, if the settings say so.

        Raises:
            EnvironmentFault: the port cannot be opened.
        """
        if self._security is None:
            return
        place = self._resp.host or self._node.host, self._resp.port
        try:
            server = RespConnections(
                self._host, stores, self._resp.default_store, RespLimits.of_settings(self._node), self._security, metrics
            )
            await server.listen(place)
            self._server = server
        except OSError as error:
            raise EnvironmentFault(f"{place[0]}:{place[1]} cannot be opened ({error.strerror}); choose another resp.port") from None

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port that the server listens on; None if the port is not open."""
        return None if self._server is None else self._server.address

    def facts(self) -> dict[str, object]:
        """The address, for the node's announcement; empty if the port is not open."""
        return {} if self._server is None else {"resp": "{}:{}".format(*self._server.address)}

    @property
    def advertised_address(self) -> str:
        """host:port as other nodes name it to clients; empty if the port is not open."""
        if self._server is None:
            return ""
        host, port = self._server.address
        published, _, _ = self._node.advertised_address.rpartition(":")
        return self._resp.advertised_address or f"{published or host}:{port}"

    async def stop(self) -> None:
        """Stop listening, and close every connection. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            await server.aclose()
