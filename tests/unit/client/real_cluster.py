"""Three real bookies on loopback sockets and in a temporary folder, on the test's own loop."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from triplicate.bookie import Bookie
from triplicate.client import Client
from triplicate.config import BookieSettings, ClientSettings, SecuritySettings
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree
from triplicate.runtime import Host, real_host

KIB = 1024


@dataclass
class RealCluster:
    host: Host
    metadata: ClusterMetadata
    bookies: dict[str, Bookie] = field(default_factory=dict)

    @asynccontextmanager
    async def client(self, settings: ClientSettings | None = None, security: SecuritySettings | None = None) -> AsyncIterator[Client]:
        async with Client(self.host, self.metadata, settings or ClientSettings(), security=security) as client:
            yield client


@asynccontextmanager
async def real_cluster(names: str = "abc", security: SecuritySettings | None = None, **more: Any) -> AsyncIterator[RealCluster]:
    """Args:
    security: the certificates of the bookies. more: settings of the bookies.
    """
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        host = real_host("test", seed=1)
        tree = MemoryTree(MemoryStore(host.clock))
        stack.push_async_callback(tree.close)
        metadata = await ClusterMetadata.open(tree, host, create=True)
        stack.push_async_callback(metadata.aclose)
        cluster = RealCluster(host, metadata)
        for name in names:
            settings = BookieSettings(
                bookie_id=name,
                journal_directories=(f"{folder}/{name}/journal",),
                ledger_directories=(f"{folder}/{name}/ledgers",),
                host="127.0.0.1",
                port=0,
                journal_preallocate_bytes=256 * KIB,
                entry_log_bytes=1024 * KIB,
                **more,
            )
            bookie = cluster.bookies[name] = await Bookie.start(host, settings, metadata, security=security)
            stack.push_async_callback(bookie.stop)
        yield cluster
