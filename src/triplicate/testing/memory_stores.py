"""The key-value stores of a cluster in the process of a test."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Self

from triplicate.embedded import LOCAL_SETTINGS, START_LIMIT_S, EmbeddedNode, temporary_folder
from triplicate.errors import EnvironmentFault, StoreExists
from triplicate.kv import HostedStores, ReplicatedStore, RespServer, create_store, drop_store
from triplicate.log import LogSettings
from triplicate.replica import NodeParts
from triplicate.runtime import Host, TaskScope, sleep

POLL_S = 0.002


class MemoryStores:
    """Hosts the stores of a cluster, beside its databases. `open` starts it."""

    def __init__(
        self, node: EmbeddedNode, log_settings: LogSettings, stores: HostedStores, server: RespServer | None, end: AsyncExitStack
    ) -> None:
        self._node = node
        self._log_settings = log_settings
        self._stores = stores
        self._server = server
        self._end = end

    @classmethod
    async def open(cls, outside: Host, node: EmbeddedNode, log_settings: LogSettings, *, serves: bool) -> Self:
        """Begin to host stores.

        Args:
            outside: has the network of the machine.
            serves: whether clients of Redis may connect to a free port of 127.0.0.1.
        """
        async with AsyncExitStack() as opened:
            stores, server, address = HostedStores(), None, ""
            if serves:
                server = await RespServer.open(outside, stores, ("127.0.0.1", 0))
                opened.push_async_callback(server.stop)
                address = "{}:{}".format(*server.address)
            settings = replace(LOCAL_SETTINGS, directory=opened.enter_context(temporary_folder()))
            client = node.client
            parts = NodeParts(
                client.host, client, node.logs, settings, None, address, lambda: True, asyncio.Lock(), None, resp_address=address
            )
            scope = TaskScope("stores")
            opened.push_async_callback(scope.aclose)
            await stores.host(parts, scope)
            return cls(node, log_settings, stores, server, opened.pop_all())

    @property
    def resp_address(self) -> tuple[str, int] | None:
        """Host and port for clients of Redis; None if nobody connects."""
        return None if self._server is None else self._server.address

    async def open_store(self, name: str) -> ReplicatedStore:
        """A store, made if there is none of the name. Raises EnvironmentFault: it cannot be used in time."""
        client = self._node.client
        with suppress(StoreExists):
            await create_store(client, name, self._log_settings, logs=self._node.logs)
        clock = client.host.clock
        deadline_s = clock.monotonic() + START_LIMIT_S
        while True:
            store = self._stores.get(name)
            if store is not None and store.is_leader:
                return store
            if clock.monotonic() >= deadline_s:
                reason = None if store is None else store.unusable
                raise EnvironmentFault(f"store {name} cannot be used after {START_LIMIT_S:g} s: {reason or 'no node leads it'}")
            await sleep(clock, POLL_S)

    async def drop_store(self, name: str) -> None:
        """Raises NoSuchStore."""
        await drop_store(self._node.client, name, self._node.logs)

    async def aclose(self) -> None:
        """End all connections and stop hosting. Idempotent."""
        await self._end.aclose()
