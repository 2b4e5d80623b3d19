"""The key-value stores of a node in the process of an application."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from triplicate.config import NodeSettings, RespSettings, StoreSettings
from triplicate.errors import HandleClosed
from triplicate.replica import NodeParts
from triplicate.runtime import Host, Metrics, TaskScope
from triplicate.security import TlsIdentity

if TYPE_CHECKING:
    from triplicate.kv import HostedStores, RespDoor


class EmbeddedStores:
    """Hosts the stores of the cluster, beside the node's databases, from `open` on.

    A program that opens no store pays nothing: it does not even load their modules.

    Args:
        outside: has the network of the machine, for clients of Redis.
        identity: of TLS; None without.
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
        self._outside = outside
        self._settings = node, settings, resp
        self._identity = identity
        self._door: RespDoor | None = None
        self._metrics = metrics
        self._node: tuple[NodeParts, TaskScope] | None = None
        self._hosting: tuple[HostedStores, asyncio.Task[None]] | None = None
        self._turn = asyncio.Lock()

    async def begin(self, parts: NodeParts, scope: TaskScope) -> None:
        """The node has started; stores may be hosted in its scope."""
        self._node = parts, scope

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port for clients of Redis; None while they are not served."""
        return None if self._door is None else self._door.address

    async def open(self) -> HostedStores:
        """The hosted stores. Those that the cluster has are open.

        Raises:
            EnvironmentFault: the port for clients of Redis cannot be opened. ConfigError: its demands cannot be kept. HandleClosed: the
                node was closed.
        """
        async with self._turn:
            if self._node is None or self._node[1].closing:
                raise HandleClosed("the node was closed; open it again")
            stores, hosting = self._hosting = self._hosting or await self._begin_hosting(*self._node)
        try:
            # A caller that gives up does not end the hosting, which others share.
            await asyncio.shield(hosting)
        except asyncio.CancelledError:
            if hosting.cancelled():
                raise HandleClosed("the node was closed; open it again") from None
            raise
        return stores

    async def _begin_hosting(self, parts: NodeParts, scope: TaskScope) -> tuple[HostedStores, asyncio.Task[None]]:
        from triplicate.kv import HostedStores, RespDoor

        node, settings, resp = self._settings
        stores = HostedStores(settings)
        self._door = RespDoor(self._outside, node, resp, self._identity)
        await self._door.open(stores, self._metrics)
        parts = replace(parts, resp_address=self._door.advertised_address)
        return stores, scope.spawn(stores.host(parts, scope), name="stores")

    async def aclose(self) -> None:
        """End all connections of clients of Redis. The node's scope ends the hosting. Idempotent."""
        async with self._turn:
            self._node = None
            if self._door is not None:
                await self._door.stop()
