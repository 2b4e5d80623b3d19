"""A whole cluster in the process of a test."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from triplicate.client import Client
from triplicate.config import RespSettings
from triplicate.embedded import START_LIMIT_S, EmbeddedDatabase, EmbeddedNode, MemoryTarget, NodeOptions
from triplicate.log import Logs, LogSettings
from triplicate.runtime import Trace, real_host, shielded

if TYPE_CHECKING:
    from triplicate.embedded import EmbeddedStore


class MemoryCluster:
    """``async with MemoryCluster() as cluster:`` starts metadata, bookies and a database node on the running loop, and stops them.

    The metadata are in memory. The bookies write into a temporary folder without syncs, which is deleted at the end. Bookies have no
    ports.

    Args:
        bookies: their number. A log has a copy on each, up to three.
        port: of PostgreSQL's protocol on 127.0.0.1, 0 for a free one; None: nobody connects, neither do clients of Redis.
        trace: called with the kind and the facts of each event; None to drop them.
    """

    def __init__(self, *, bookies: int = 1, port: int | None = None, trace: Trace | None = None) -> None:
        self._options = NodeOptions(port=port, bookies=bookies, resp=RespSettings(serve=port is not None))
        self._trace = trace
        self._node: EmbeddedNode | None = None

    async def __aenter__(self) -> Self:
        self._node = await EmbeddedNode.open(real_host("test", trace=self._trace), MemoryTarget(), self._options)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        node, self._node = self._node, None
        if node is not None:
            await shielded(node.aclose())

    @property
    def node(self) -> EmbeddedNode:
        """The database node, with its cluster."""
        assert self._node is not None, "the cluster is used inside of its block: async with MemoryCluster() as cluster"
        return self._node

    @property
    def client(self) -> Client:
        """A client of the bookies, for ledgers."""
        return self.node.client

    @property
    def logs(self) -> Logs:
        """The logs of the cluster. Give `log_settings` to a log that is created."""
        return self.node.logs

    @property
    def log_settings(self) -> LogSettings:
        """The settings of a log that has as many copies as there are bookies, up to three."""
        cluster = self.node.cluster
        assert cluster is not None, "a cluster in memory is in its process"
        return cluster.log_settings

    async def database(self, name: str = "main") -> EmbeddedDatabase:
        """A database of the cluster, made if there is none of the name. It ends with the cluster.

        Raises:
            EnvironmentFault: it cannot be used in time.
        """
        return await EmbeddedDatabase.open(self.node, name, create=True, limit_s=START_LIMIT_S)

    async def key_value(self, name: str = "main") -> EmbeddedStore:
        """A key-value store of the cluster, made if there is none of the name. It ends with the cluster.

        Raises:
            EnvironmentFault: it cannot be used in time, or the package rocksdict is missing.
        """
        from triplicate.embedded import EmbeddedStore

        return await EmbeddedStore.open(self.node, name, create=True, limit_s=START_LIMIT_S, shares_node=True)

    async def drop_key_value(self, name: str) -> None:
        """Drop a key-value store. Raises NoSuchStore."""
        from triplicate.kv import drop_store

        await drop_store(self.client, name, self.logs)

    @property
    def resp_address(self) -> tuple[str, int] | None:
        """Host and port for clients of Redis, once there is a key-value store; None without a port."""
        return self.node.stores.address
