"""A real ZooKeeper for tests: the starter of `triplicate up --metadata zk`, made faster without its syncs."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from triplicate.cli.supervision.zookeeper_process import JARS, ZooKeeperProcess, configuration, find_jars, secure_configuration
from triplicate.cli.supervision.zookeeper_security import ZooKeeperSecurity, write_secure_files

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

    Args:
        security: None for a server that everyone may use.
        settings: for ``zoo.cfg``.
    """

    def __init__(self, folder: Path, security: ZooKeeperSecurity | None = None, settings: Mapping[str, object] | None = None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._folder = folder
        self.security = security
        self._settings = settings or {}
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
        data, times = self._folder / "data", {"tickTime": TICK_MS, "maxSessionTimeout": SESSION_LONGEST_MS, **self._settings}
        if self.security is None:
            path.write_text(configuration(data, self.port, **times))
        else:
            path.write_text(secure_configuration(data, self.port, self.write_secure_files(), **times))
        server = ZooKeeperProcess(path, self._folder / "log", OPTIONS, jars())
        server.start()
        self._server = server

    def write_secure_files(self) -> Mapping[str, object]:
        """Write the certificate and the users of `security` again, which may be another by now. Returns the settings for them."""
        assert self.security is not None
        return write_secure_files(self._folder, self.security)

    def kill(self) -> None:
        """SIGKILL the server, as in a crash."""
        if self._server is not None:
            self._server.kill()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()

    def pause(self) -> None:
        """Stop all threads of the server. The kernel stops them one after another, and a thread that still runs may answer."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

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
