"""The key-value stores of a node in the process of an application."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from triplicate.config import NodeSettings, RespSettings, StoreSettings
from triplicate.errors import HandleClosed
from triplicate.kv import HostedStores, RespDoor
from triplicate.replica import NodeParts
from triplicate.runtime import Host, Metrics, TaskScope
from triplicate.security import TlsIdentity


class EmbeddedStores:
    """Hosts the stores of the cluster, beside the node's databases, from `open` on. A program without any store pays nothing.

    Args:
        outside: has the network of the machine, for clients of Redis.
        identity: of TLS; None without.

    Raises (on creation):
        ConfigError: clients of Redis are to be served, and the demands on them cannot be kept.
    """

    def __init__(
        self,
        outside: Host,
        node: NodeSettings,
        settings: StoreSettings,
        resp: RespSettings,
        identity: TlsIdentity | None,
        metrics: Metrics | None,
    ) -> None:
        self._hosted = HostedStores(settings)
        self._door = RespDoor(outside, node, resp, identity)
        self._metrics = metrics
        self._node: tuple[NodeParts, TaskScope] | None = None
        self._hosting: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def begin(self, parts: NodeParts, scope: TaskScope) -> None:
        """The node has started; stores may be hosted in its scope."""
        self._node = parts, scope

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port for clients of Redis; None while they are not served."""
        return self._door.address

    async def open(self) -> HostedStores:
        """The hosted stores. Those that the cluster has are open.

        Raises:
            EnvironmentFault: the port for clients of Redis cannot be opened. HandleClosed: the node was closed.
        """
        async with self._turn:
            if self._node is None:
                raise HandleClosed("the node was closed; open it again")
            if self._door.address is None:
                await self._door.open(self._hosted, self._metrics)
            if self._hosting is None:
                parts, scope = self._node
                parts = replace(parts, resp_address=self._door.advertised_address)
                self._hosting = scope.spawn(self._hosted.host(parts, scope), name="stores")
            try:
                # A caller that gives up does not end the hosting, which others share.
                await asyncio.shield(self._hosting)
            except asyncio.CancelledError:
                if self._hosting.cancelled():
                    raise HandleClosed("the node was closed; open it again") from None
                raise
        return self._hosted

    async def aclose(self) -> None:
        """End all connections of clients of Redis. The node's scope ends the hosting. Idempotent."""
        self._node = None
        await self._door.stop()
