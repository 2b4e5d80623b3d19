"""A real ZooKeeper for tests: the starter of `triplicate up --metadata zk`, made faster without its syncs."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import tempfile
from functools import cache
from pathlib import Path

from triplicate.cli.supervision.zookeeper_process import JARS, ZooKeeperProcess, configuration, find_jars

TICK_MS = 500
"""Sessions last at least two ticks."""

SESSION_LONGEST_MS = 60_000

# These tests do not depend on syncs to the shared disk.
OPTIONS = ("-Dzookeeper.forceSync=no", "-Xmx64m")


def jars() -> list[Path]:
    """Without those that write a log: a third of a second quicker."""
    return find_jars(JARS)


class ZooKeeperServer:
    """One server with its data in `folder`, which outlives a restart.

    It does not outlive the thread that started it.
    """

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._folder = folder
        self._server: ZooKeeperProcess | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._server is not None
        assert self._server.process is not None
        return self._server.process.pid

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / "zoo.cfg"
        path.write_text(configuration(self._folder / "data", self.port, tickTime=TICK_MS, maxSessionTimeout=SESSION_LONGEST_MS))
        server = ZooKeeperProcess(path, self._folder / "log", OPTIONS, jars())
        server.start()
        self._server = server

    def kill(self) -> None:
        """SIGKILL the server, as in a crash."""
        if self._server is not None:
            self._server.kill()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)


@cache
def shared_server() -> ZooKeeperServer:
    """The server of this test run, started at its first use. No test may stop or pause it."""
    folder = Path(tempfile.mkdtemp(prefix="zookeeper-"))
    server = ZooKeeperServer(folder)

    def end() -> None:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    server.start()
    return server
