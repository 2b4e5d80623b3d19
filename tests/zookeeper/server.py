"""A real ZooKeeper for tests: the one whose jars PySpark brings along, as a process on the loopback interface.

Source: ZooKeeper Administrator's Guide. Five jars and a small heap start in about half a second and take 80 MB.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

JARS = ("zookeeper-3", "zookeeper-jute", "slf4j-api", "metrics-core", "snappy-java")
TICK_MS = 500
"""Sessions last at least two ticks and at most twenty."""

START_LIMIT_S = 20.0


def jars() -> list[Path]:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None, "PySpark is missing: run `make setup`"
    folder = Path(str(spec.origin)).parent / "jars"
    return [next(folder.glob(f"{name}*.jar")) for name in JARS]


class ZooKeeperServer:
    """One server with its data in `folder`, which outlives a restart."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        java = shutil.which("java")
        assert java is not None, "Java is missing: run `make setup`"
        self._folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "tickTime": TICK_MS,
            "initLimit": 10,
            "syncLimit": 5,
            "dataDir": self._folder / "data",
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "maxClientCnxns": 0,
        }
        configuration = self._folder / "zoo.cfg"
        configuration.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        memory = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        # What these tests prove does not hang on the disk's sync, and they share it with others.
        command = [java, *memory, "-Dzookeeper.forceSync=no", "-cp", ":".join(map(str, jars()))]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(configuration)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._wait_serving()

    def _wait_serving(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            if self._answers():
                return
            time.sleep(0.02)
        log = (self._folder / "log").read_text(errors="replace")
        self.stop()
        raise AssertionError(f"ZooKeeper does not start:\n{log[-2000:]}")

    def _answers(self) -> bool:
        """It listens for a moment before it serves, and leaves who connects then without an answer."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"srvr")
                return b"Zookeeper version" in connection.recv(4096)
        except OSError:
            return False

    def kill(self) -> None:
        """As a crash would: nothing is said to anybody."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def pause(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)


@cache
def shared_server() -> ZooKeeperServer:
    """The server of this test run, started when it is first asked for. Nobody may stop or pause it."""
    folder = Path(tempfile.mkdtemp(prefix="zookeeper-"))
    server = ZooKeeperServer(folder)

    def end() -> None:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    server.start()
    return server
