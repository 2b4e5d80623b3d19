"""Bookies as processes, ours and Apache's, and the clusters they make up.

Each process logs to ``build/interop/logs`` and keeps its data in its own folder. It has a fixed port, so that it can be restarted on its
data, and is ended by its own id.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from tests.interop.driver import BUILD, NEWEST, java_command
from tests.process.running import command, environment

LOGS = BUILD / "logs"
START_LIMIT_S = 60.0
"""Java on two busy cores."""

APACHE_SETTINGS: dict[str, object] = {
    "allowLoopback": True,
    "advertisedAddress": "127.0.0.1",
    "listeningInterface": "lo",
    "httpServerEnabled": False,
    "autoRecoveryDaemonEnabled": False,
    "statsProviderClass": "org.apache.bookkeeper.stats.NullStatsProvider",
    "extraServerComponents": "",
    "zkTimeout": 5000,
    "journalSyncData": True,
    "journalFlushWhenQueueEmpty": True,
    "journalPreAllocSizeMB": 4,
    "journalMaxSizeMB": 64,
    "entryLogFilePreallocationEnabled": False,
    "logSizeLimit": 64 * 1024 * 1024,
    "flushInterval": 1000,
    "gcWaitTime": 5000,
    "numReadWorkerThreads": 1,
    "numHighPriorityWorkerThreads": 1,
    "numJournalCallbackThreads": 1,
    "serverNumIOThreads": 1,
    "skipListSizeLimit": 16 * 1024 * 1024,
    "minUsableSizeForEntryLogCreation": 64 * 1024 * 1024,
    "minUsableSizeForIndexFileCreation": 64 * 1024 * 1024,
    "minUsableSizeForHighPriorityWrites": 64 * 1024 * 1024,
    "diskUsageThreshold": 0.99,
    "diskUsageWarnThreshold": 0.98,
    "diskUsageLwmThreshold": 0.99,
    "dbStorage_writeCacheMaxSizeMb": 16,
    "dbStorage_readAheadCacheMaxSizeMb": 8,
    "dbStorage_rocksDB_blockCacheSize": 8 * 1024 * 1024,
    "dbStorage_rocksDB_writeBufferSizeMB": 4,
}
"""Small and quick to start; every setting of durability has Apache's default."""

SORTED = "org.apache.bookkeeper.bookie.SortedLedgerStorage"
DATABASE = "org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage"


FIRST_PORT, LAST_PORT = 20_000, 29_999
"""Below the system's ephemeral ports, so that a killed bookie's port is still free at its restart."""

_ports = itertools.cycle(range(FIRST_PORT, LAST_PORT + 1))
# Concurrent runs begin at different ports.
for _ in range(os.getpid() * 64 % (LAST_PORT - FIRST_PORT)):
    next(_ports)


def free_port() -> int:
    for port in itertools.islice(_ports, LAST_PORT - FIRST_PORT):
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")


class BookieProcess(ABC):
    """One bookie. `version` names its implementation."""

    version: str

    def __init__(self, name: str, uri: str, folder: Path) -> None:
        self.name = name
        self.uri = uri
        self.folder = folder
        self.port = free_port()
        self.bookie_id = name
        self.process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """Write the configuration and return the command line."""

    def begin(self) -> None:
        """Start the process; `wait_serving` waits until it serves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        LOGS.mkdir(parents=True, exist_ok=True)
        arguments = self.command()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(arguments, env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def log(self) -> Path:
        return LOGS / f"{self.name}.log"

    def wait_serving(self) -> None:
        """Wait until the port answers. Registration comes about an instant earlier or later; a caller that needs it waits for it."""
        assert self.process is not None
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return
            except OSError:
                time.sleep(0.05)
        tail = self.log.read_text(errors="replace")[-3000:]
        self.kill()
        raise AssertionError(f"{self.name} does not start:\n{tail}")

    def start(self) -> None:
        self.begin()
        self.wait_serving()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        if self.process is not None:
            self.resume()
            self.process.terminate()
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def pause(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)


class OurBookie(BookieProcess):
    """``triplicate bookie``."""

    version = "Triplicate"

    def command(self) -> list[str]:
        options = {
            "--bookie-id": self.bookie_id,
            "--host": "127.0.0.1",
            "--port": self.port,
            "--journal-directories": self.folder / "journal",
            "--ledger-directories": self.folder / "ledgers",
            "--metadata": self.uri,
            "--journal-preallocate-bytes": 1 << 20,
        }
        return command("bookie", *[str(part) for option in options.items() for part in option])


class ApacheBookie(BookieProcess):
    """``org.apache.bookkeeper.server.Main``. Without a configured name its id is its address, as in most clusters."""

    def __init__(self, name: str, uri: str, folder: Path, *, storage: str = SORTED, named: bool = False, release: str = NEWEST) -> None:
        super().__init__(name, uri, folder)
        self.release = release
        self.version = f"Apache {release}"
        self.storage = storage
        self.settings: dict[str, object] = {}
        """More settings, for the next start."""
        self.java_options: tuple[str, ...] = ()
        self._named = named
        if not named:
            self.bookie_id = f"127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        settings = {
            **APACHE_SETTINGS,
            "bookiePort": self.port,
            "metadataServiceUri": self.uri,
            "journalDirectories": self.folder / "journal",
            "ledgerDirectories": self.folder / "ledgers",
            "ledgerStorageClass": self.storage,
        }
        if self._named:
            settings["bookieId"] = self.name
        settings |= self.settings
        configuration = self.folder / "bookie.conf"
        write_configuration(configuration, settings)
        memory = ("-Xms64m", "-Xmx192m", "-XX:MaxDirectMemorySize=160m", f"-Djava.io.tmpdir={self.folder}", *self.java_options)
        return [*java_command(self.release, *memory), "org.apache.bookkeeper.server.Main", "--conf", str(configuration)]


def write_configuration(path: Path, settings: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{name}={str(value).lower() if isinstance(value, bool) else value}\n" for name, value in settings.items()]
    path.write_text("".join(lines))


def initialise_with_apache(uri: str, folder: Path) -> None:
    """Make a new cluster with Apache's own shell."""
    folder.mkdir(parents=True, exist_ok=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    configuration = folder / "shell.conf"
    write_configuration(configuration, {"metadataServiceUri": uri})
    shell = [*java_command(NEWEST, "-Xmx64m"), "org.apache.bookkeeper.bookie.BookieShell", "-conf", str(configuration), "initnewcluster"]
    with (LOGS / "initnewcluster.log").open("ab") as log:
        subprocess.run(shell, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=START_LIMIT_S, check=True)


def initialise_with_ours(uri: str) -> None:
    subprocess.run(
        command("cluster", "init", uri), env=environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=START_LIMIT_S, check=True
    )


class Cluster:
    """Bookies on one metadata root. `servers` is the same root as a connection string of ZooKeeper's own clients.

    With `ensemble_size` every ledger lies on every kind of bookie.
    """

    def __init__(self, name: str, servers: str, bookies: Sequence[BookieProcess], uri: str) -> None:
        self.name = name
        self.servers = servers
        self.uri = uri
        self.bookies = list(bookies)
        self.ensemble_size = len(self.bookies)

    @property
    def versions(self) -> str:
        return " and ".join(sorted({bookie.version for bookie in self.bookies}))

    def start(self) -> None:
        """Start all at once; if one fails, end the others."""
        try:
            for bookie in self.bookies:
                bookie.begin()
            for bookie in self.bookies:
                bookie.wait_serving()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for bookie in self.bookies:
            bookie.kill()
        for bookie in self.bookies:
            shutil.rmtree(bookie.folder, ignore_errors=True)
