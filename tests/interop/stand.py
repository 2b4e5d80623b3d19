"""Shared objects of one run: a ZooKeeper, three clusters, the Java drivers, our clients. Each starts at its first use.

    ours     three bookies of ours, made by `triplicate cluster init`
    apache   three of Apache's, made by Apache's shell; two keep SortedLedgerStorage, one DbLedgerStorage
    mixed    two of ours and two of Apache's; ledgers of four bookies lie on both kinds

`Stand.close` ends all of them, also those that a test left behind.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from kazoo.client import KazooClient

from tests.interop.bookies import (
    DATABASE,
    LOGS,
    ApacheBookie,
    BookieProcess,
    Cluster,
    OurBookie,
    initialise_with_apache,
    initialise_with_ours,
)
from tests.interop.driver import Driver, JavaClient
from tests.waiting import wait_until
from tests.zookeeper.server import ZooKeeperServer
from triplicate import Client, ClientSettings, connect
from triplicate.blocking import BackgroundLoop

Result = TypeVar("Result")

CLUSTERS = ("ours", "apache", "mixed")
OURS = "triplicate"
"""Name of our client; a Java client's name is ``java-RELEASE``."""

RUN_LIMIT_S = 60.0
"""Longer than any operation of a client takes, also while bookies are killed and ZooKeeper restarts."""

SESSION_MS = 5000
"""Session timeout of Java clients and bookies."""


class Stand:
    """See the module's text."""

    def __init__(self) -> None:
        shutil.rmtree(LOGS, ignore_errors=True)
        LOGS.mkdir(parents=True)
        self._folder = Path(tempfile.mkdtemp(prefix="interop-"))
        self._zookeeper: ZooKeeperServer | None = None
        self._clusters: dict[str, Cluster] = {}
        self._drivers: dict[str, Driver] = {}
        self._java_clients: dict[tuple[str, str, str], JavaClient] = {}
        self._our_clients: dict[tuple[str, str], Client] = {}
        self._closing = ExitStack()
        self._names = 0
        self.loop = BackgroundLoop("our clients")
        self._async_closing = AsyncExitStack()

    def run(self, coroutine: Coroutine[Any, Any, Result], within_s: float = RUN_LIMIT_S) -> Result:
        """Run a coroutine on the loop of our clients, and return its result."""
        return self.loop.call(asyncio.wait_for(coroutine, within_s))

    def new_folder(self) -> Path:
        """A fresh folder, deleted with the stand."""
        self._names += 1
        folder = self._folder / str(self._names)
        folder.mkdir()
        return folder

    @property
    def zookeeper(self) -> ZooKeeperServer:
        """The ZooKeeper of all clusters. A test that stops it restarts it."""
        if self._zookeeper is None:
            self._zookeeper = ZooKeeperServer(self._folder / "zookeeper")
            self._zookeeper.start()
        return self._zookeeper

    def servers(self, root: str) -> str:
        """The connection string of ZooKeeper's own clients, with the cluster's root."""
        return f"{self.zookeeper.address}/{root}"

    def uri(self, root: str) -> str:
        """The metadata address of a cluster named `root`, in BookKeeper's form and ours."""
        return f"zk+hierarchical://{self.zookeeper.address}/{root}/ledgers"

    def cluster(self, name: str) -> Cluster:
        """One of `CLUSTERS`, running. A test that stops a bookie restarts it, or uses `new_cluster`."""
        if name not in self._clusters:
            counts = {"ours": (3, 0), "apache": (0, 3), "mixed": (2, 2)}
            self._clusters[name] = self.new_cluster(name, *counts[name])
        return self._clusters[name]

    def new_cluster(self, name: str, ours: int, apache: int) -> Cluster:
        """A separate cluster with the given numbers of bookies. It ends with the stand, or earlier with `Cluster.stop`."""
        uri, folder = self.uri(name), self.new_folder()
        self.make_root(name)
        if apache:
            initialise_with_apache(uri, folder)
        else:
            initialise_with_ours(uri)
        bookies: list[BookieProcess] = [OurBookie(f"{name}-ours-{number}", uri, folder / f"ours-{number}") for number in range(1, ours + 1)]
        for number in range(1, apache + 1):
            more = {"storage": DATABASE} if number == apache else {}
            # Ids of both shapes: names, and addresses.
            bookies.append(ApacheBookie(f"{name}-apache-{number}", uri, folder / f"apache-{number}", named=number == 2, **more))
        cluster = Cluster(name, self.servers(name), bookies, uri)
        self._closing.callback(cluster.stop)
        cluster.start()
        self.wait_writable(cluster)
        return cluster

    def add_bookie(self, cluster: Cluster, kind: str) -> BookieProcess:
        """Start one more bookie, ``ours`` or ``apache``; the test removes it with `remove_bookie`."""
        self._names += 1
        name, folder = f"{cluster.name}-{kind}-spare-{self._names}", self._folder / f"spare-{self._names}"
        bookie: BookieProcess = OurBookie(name, cluster.uri, folder) if kind == "ours" else ApacheBookie(name, cluster.uri, folder)
        cluster.bookies.append(bookie)
        bookie.start()
        self.wait_writable(cluster)
        return bookie

    def remove_bookie(self, cluster: Cluster, bookie: BookieProcess) -> None:
        """Stop it and wait until its registration is gone."""
        cluster.bookies.remove(bookie)
        bookie.stop()
        self.wait_writable(cluster)

    @contextmanager
    def kazoo(self) -> Iterator[KazooClient]:
        """A plain client of ZooKeeper."""
        client = KazooClient(hosts=self.zookeeper.address)
        client.start(timeout=10)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def make_root(self, name: str) -> None:
        """Create the root; BookKeeper creates only the last part of a metadata address."""
        with self.kazoo() as client:
            client.ensure_path(f"/{name}")

    def set_node(self, path: str, data: bytes) -> None:
        with self.kazoo() as client:
            client.set(path, data)

    def wait_writable(self, cluster: Cluster, within_s: float = 30.0) -> None:
        """Wait until exactly the running bookies are registered as writable."""
        wanted = sorted(bookie.bookie_id for bookie in cluster.bookies if bookie.process is not None)
        client = self.our_client(cluster, "v2")

        def registered() -> bool:
            return sorted(self.run(client.metadata.bookies.writable())) == wanted

        wait_until(registered, within_s, f"bookies {wanted} are registered")

    def driver(self, release: str) -> Driver:
        """The long-lived driver of a release. A test that kills or pauses a driver uses `new_driver`."""
        if release not in self._drivers:
            self._drivers[release] = self.new_driver(release)
        return self._drivers[release]

    def new_driver(self, release: str, *options: str) -> Driver:
        """A separate driver, ended with the stand at the latest. `options`: of its Java machine."""
        self._names += 1
        driver = Driver(release, LOGS / f"driver-{release}-{self._names}.log", *options)
        self._closing.callback(driver.close)
        return driver

    def java_client(self, release: str, cluster: Cluster, wire: str) -> JavaClient:
        """A client that lives as long as the stand; ``driver(release).connect`` makes one with other settings."""
        key = (release, cluster.uri, wire)
        if key not in self._java_clients:
            self._java_clients[key] = self.driver(release).connect(cluster.uri, wire=wire, settings=java_settings())
        return self._java_clients[key]

    def our_client(self, cluster: Cluster, wire: str) -> Client:
        """A client that lives as long as the stand, on the loop of `run`."""
        key = (cluster.uri, wire)
        if key not in self._our_clients:
            self._our_clients[key] = self.run(self._open_client(cluster.uri, our_settings(wire)))
        return self._our_clients[key]

    def new_client(self, cluster: Cluster, settings: ClientSettings) -> Client:
        """A separate client, closed with the stand at the latest."""
        return self.run(self._open_client(cluster.uri, settings))

    async def _open_client(self, uri: str, settings: ClientSettings) -> Client:
        return await self._async_closing.enter_async_context(connect(uri, settings=settings))

    def close(self) -> None:
        self._closing.callback(shutil.rmtree, self._folder, ignore_errors=True)
        if self._zookeeper is not None:
            self._closing.callback(self._zookeeper.stop)
        self._closing.callback(self.loop.close)
        # Clients are closed before their servers.
        self._closing.callback(lambda: self.run(self._async_closing.aclose()))
        self._closing.close()


def our_settings(wire: str, **more: Any) -> ClientSettings:
    known: dict[str, Any] = {"wire": wire} if "wire" in ClientSettings.__dataclass_fields__ else {}
    return ClientSettings(**known, **more)


def java_settings(**more: object) -> Mapping[str, object]:
    return {"zkTimeout": SESSION_MS, **more}
