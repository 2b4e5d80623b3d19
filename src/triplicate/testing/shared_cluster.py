"""A cluster that several tests share, without `await`: each has logs, databases and key-value stores of its own in it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from triplicate.blocking import BackgroundLoop, BlockingLogs, OpenDatabase, OpenOnLoop, StoreMethods
from triplicate.dbapi import Connection, SharedDatabase
from triplicate.embedded import EmbeddedDatabase, EmbeddedStore
from triplicate.errors import ConfigError
from triplicate.sql import drop_database
from triplicate.testing.memory_cluster import MemoryCluster

Result = TypeVar("Result")


class SharedCluster(OpenOnLoop):
    """`MemoryCluster` on a thread with an event loop of its own.

    Args:
        options: of `MemoryCluster`.
    """

    def __init__(self, **options: Any) -> None:
        self.loop = BackgroundLoop("triplicate-test")
        self._numbers = itertools.count(1)
        self.cluster = self._open(self.loop, partial(MemoryCluster, **options))

    @property
    def logs(self) -> BlockingLogs:
        """The logs of the cluster."""
        return BlockingLogs(self.loop, self.cluster.logs)

    def run(self, work: Callable[[MemoryCluster], Coroutine[Any, Any, Result]]) -> Result:
        """Run a coroutine with the cluster on its loop, for what has no blocking form: ``cluster.run(lambda cluster: check(cluster))``."""
        return self.loop.call(work(self.cluster))

    def new_log(self, prefix: str = "log") -> LogOfTest:
        """Create an empty log with a name that no other has."""
        name = f"{prefix}-{next(self._numbers)}"
        self.logs.create(name, self.cluster.log_settings)
        return LogOfTest(name, self)

    def new_database(self, prefix: str = "database") -> DatabaseOfTest:
        """Create an empty database with a name that no other has."""
        opened = self.loop.call(self.cluster.database(f"{prefix}_{next(self._numbers)}"))
        return DatabaseOfTest(self, opened)

    def new_key_value(self, prefix: str = "store") -> KeyValueOfTest:
        """Create an empty key-value store with a name that no other has."""
        name = f"{prefix}-{next(self._numbers)}"
        return KeyValueOfTest(self, self.loop.call(self.cluster.key_value(name)))


class LogOfTest:
    """A log for one test."""

    def __init__(self, name: str, cluster: SharedCluster) -> None:
        self.name = name
        self.cluster = cluster

    @property
    def logs(self) -> BlockingLogs:
        """Opens writers and readers of it, by its name."""
        return self.cluster.logs

    def delete(self) -> None:
        """Delete the log."""
        self.logs.delete(self.name)


class DatabaseOfTest(OpenDatabase):
    """A database for one test."""

    def __init__(self, cluster: SharedCluster, database: EmbeddedDatabase) -> None:
        super().__init__(cluster.loop, database)
        self._shared = SharedDatabase((database.name, ""), cluster.loop, None, database)
        self._cluster = cluster

    def connect(self, **options: Any) -> Connection:
        """A DB-API connection; see `triplicate.dbapi.Connection` for the options."""
        self._shared.users += 1
        return Connection(self._shared, **options)

    def drop(self) -> None:
        """Drop the database. Its sessions end."""
        self.loop.call(drop_database(self._cluster.cluster.client, self.name))


class KeyValueOfTest(StoreMethods):
    """A key-value store for one test, by its methods and for clients of Redis."""

    def __init__(self, cluster: SharedCluster, store: EmbeddedStore) -> None:
        super().__init__(cluster.loop, store)
        self.cluster = cluster

    def url(self) -> str:
        """For clients of Redis, which name the store as their user: ``redis.Redis.from_url(store.url())``.

        Raises:
            ConfigError: the cluster has no port.
        """
        if self.address is None:
            raise ConfigError("nobody connects to a cluster without a port: SharedCluster(port=0)")
        return "redis://{}:any@{}:{}".format(self.name, *self.address)

    def run(self, work: Callable[[EmbeddedStore], Coroutine[Any, Any, Result]]) -> Result:
        """Run a coroutine with the store on the cluster's loop: ``store.run(lambda store: store.get(b"a"))``."""
        return self.loop.call(work(self._store))

    def drop(self) -> None:
        """Drop the store."""
        self.loop.call(self.cluster.cluster.drop_key_value(self.name))
