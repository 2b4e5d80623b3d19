"""A server for clients of Redis over stores that lead, on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
import redis.asyncio

from tests.unit.kv.held_store_log import HeldStoreLog
from tests.waiting import LIMIT_S, PLAY_LIMIT_S, eventually
from triplicate.config import NodeSettings, StoreSettings
from triplicate.kv.engine.replicated_store import ReplicatedStore
from triplicate.kv.resp.resp_connections import RespConnections, RespLimits
from triplicate.kv.resp.resp_security import RespSecurity
from triplicate.runtime import Metrics, TaskScope, real_host

VALUE_BYTES = 4096


class LocalStores:
    """Implements `KeyValueStores`: stores in this process, without a cluster."""

    def __init__(self) -> None:
        self.stores: dict[str, ReplicatedStore] = {}
        self.logs: dict[str, HeldStoreLog] = {}
        self.leading: dict[str, asyncio.Task[None]] = {}
        self.starting = False

    def get(self, name: str) -> ReplicatedStore | None:
        return self.stores.get(name)

    def names(self) -> list[str]:
        return sorted(self.stores)

    async def open(self, name: str, folder: Path, scope: TaskScope) -> ReplicatedStore:
        """Open a store, and lead it."""
        host, settings = real_host("test", seed=1), StoreSettings(value_bytes=VALUE_BYTES, mark_interval_s=0.0)
        identity = name.encode().ljust(16, b"-")
        store = self.stores[name] = ReplicatedStore(host, name, identity, str(folder / "stores" / name), settings, NodeSettings())
        log = self.logs[name] = HeldStoreLog()
        await store.open()
        await store.follow()
        self.leading[name] = scope.spawn(store._lead(log, lambda: None), name=f"leading {name}")
        await eventually(lambda: store.is_leader)
        return store

    async def close(self) -> None:
        for leading in self.leading.values():
            leading.cancel()
        await asyncio.gather(*self.leading.values(), return_exceptions=True)
        for store in self.stores.values():
            await store.close()


@dataclass
class Stand:
    """A server that runs."""

    server: RespConnections
    stores: LocalStores
    metrics: Metrics

    @property
    def port(self) -> int:
        return self.server.address[1]

    @property
    def store(self) -> ReplicatedStore:
        """The first store."""
        return next(iter(self.stores.stores.values()))

    @property
    def log(self) -> HeldStoreLog:
        return self.stores.logs[self.store.name]

    def client(self, protocol: int = 3, **more: Any) -> Any:
        """A client of redis-py without retries. Untyped, since redis-py's own types are those of both its kinds of clients."""
        return redis.asyncio.Redis(port=self.port, protocol=protocol, **{"retry": None, "socket_timeout": LIMIT_S, **more})

    async def follow(self) -> None:
        """Let the first store follow a leader that is not known."""
        self.stores.leading[self.store.name].cancel()
        await eventually(lambda: not self.store.is_leader)

    def unserved_bytes(self) -> int:
        """Bytes of requests that have arrived and are not served."""
        return sum(each.stream.buffer.size for each in self.server._connections.values())

    async def raw(self) -> RawClient:
        return RawClient(*await asyncio.open_connection("127.0.0.1", self.port))


@dataclass
class RawClient:
    """A client that sends what a test wants."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, request: bytes) -> bytes:
        """Send a request, and return the first line of the reply."""
        self.writer.write(request)
        return (await self.reader.readline()).rstrip(b"\r\n")

    async def rest(self) -> bytes:
        """Everything until the end of the connection."""
        return await self.reader.read()

    def close(self) -> None:
        self.writer.close()


@asynccontextmanager
async def serving(
    folder: Path,
    names: Sequence[str] = ("shop",),
    *,
    limits: RespLimits | None = None,
    security: RespSecurity | None = None,
    default_store: str = "",
) -> AsyncIterator[Stand]:
    """A server with these stores."""
    async with AsyncExitStack() as opened:
        scope = TaskScope("stores")
        stores = LocalStores()
        opened.push_async_callback(stores.close)
        for name in names:
            await stores.open(name, folder, scope)
        metrics = Metrics()
        host = real_host("server", seed=2)
        server = RespConnections(host, stores, default_store, limits or RespLimits(), security or RespSecurity(), metrics)
        opened.push_async_callback(server.aclose)
        await server.listen(("127.0.0.1", 0))
        yield Stand(server, stores, metrics)


Scene = Callable[[Stand], Coroutine[Any, Any, None]]


def play(folder: Path, scene: Scene, **options: Any) -> None:
    """Run a scene with a server, with a limit."""

    async def body() -> None:
        async with asyncio.timeout(PLAY_LIMIT_S), serving(folder, **options) as stand:
            await scene(stand)
            await eventually(lambda: True)

    asyncio.run(body())


def request(*words: bytes) -> bytes:
    """An array of bulk strings."""
    return b"*%d\r\n%b" % (len(words), b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words))
