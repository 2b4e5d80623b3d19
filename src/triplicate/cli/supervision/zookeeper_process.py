"""A real ZooKeeper server as a process on the loopback interface, run from the jars in PySpark.

Source: ZooKeeper Administrator's Guide (configuration, `srvr`).
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from triplicate.cli.supervision.zookeeper_security import JAAS_SETTING, NETTY_JARS, probe_context
from triplicate.errors import ConfigError, EnvironmentFault

MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
JARS = ("zookeeper-3", "zookeeper-jute", "slf4j-api", "metrics-core", "snappy-java")
"""The jars among PySpark's 250 that a server needs. It starts in about half a second."""

LOG_JARS = ("log4j-api", "log4j-core", "log4j-slf4j2-impl")
"""Jars with which the server logs why it does not start."""

HEAP = "-Xmx256m"
START_LIMIT_S = 30.0
STOP_LIMIT_S = 10.0
POLL_S = 0.02

_SPARK_CURE = "pip install 'triplicate[spark,zookeeper]'"
_JAVA_CURE = "install a Java runtime of release 17 or later (Debian: apt install openjdk-17-jre-headless), or set JAVA_HOME"
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>


def find_jars(names: Sequence[str] = JARS + LOG_JARS) -> list[Path]:
    """Find ZooKeeper's jars and their dependencies by the beginnings of their names.

    Raises:
        ConfigError: PySpark is missing, or lacks the expected jars.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise ConfigError(f"ZooKeeper's jars come with PySpark, which is missing: {_SPARK_CURE}")
    folder = Path(found.origin).parent / "jars"
    jars = [jar for name in names for jar in sorted(folder.glob(f"{name}*.jar"))[:1]]
    if len(jars) < len(names):
        raise ConfigError(f"{folder} lacks jars of ZooKeeper; install PySpark again: {_SPARK_CURE}")
    return jars


def find_java() -> str:
    """The Java launcher of JAVA_HOME, or the one on the path.

    Raises:
        ConfigError: there is no Java launcher.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME={home} holds no Java" if home else "Java is missing"
        raise ConfigError(f"{where}, which ZooKeeper needs: {_JAVA_CURE}")
    return java


def check_kazoo() -> None:
    """Raises ConfigError: kazoo, the ZooKeeper client, is missing."""
    if importlib.util.find_spec("kazoo") is None:
        raise ConfigError("ZooKeeper needs kazoo: pip install 'triplicate[zookeeper]'")


def configuration(data: Path, port: int, **more: object) -> str:
    """The text of a ``zoo.cfg`` for one server on loopback.

    Args:
        more: ZooKeeper settings that override the defaults chosen here.
    """
    return _text(data, {"clientPort": port, "clientPortAddress": "127.0.0.1", **more})


def secure_configuration(data: Path, port: int, files: Mapping[str, object], **more: object) -> str:
    """The text of a ``zoo.cfg`` for one server on loopback that serves TLS only, and authenticates every session.

    Args:
        files: the result of `write_secure_files`.
        more: ZooKeeper settings that override the others.
    """
    return _text(data, {"secureClientPort": port, "secureClientPortAddress": "127.0.0.1", **files, **more})


def _text(data: Path, more: Mapping[str, object]) -> str:
    settings: dict[str, object] = {
        "tickTime": 2000,
        "initLimit": 10,
        "syncLimit": 5,
        "dataDir": data,
        "admin.enableServer": "false",
        # All clients have the same address, and each process has a connection.
        "maxClientCnxns": 0,
        "autopurge.snapRetainCount": 3,
        "autopurge.purgeInterval": 24,
        **more,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def read_configuration(path: Path) -> Mapping[str, str]:
    """The settings of a ``zoo.cfg``.

    Raises:
        ConfigError: the file is missing, or has no data directory or no port.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    pairs = [line.partition("=") for line in lines if "=" in line and not line.lstrip().startswith("#")]
    settings = {name.strip(): value.strip() for name, _, value in pairs}
    port = settings.get("secureClientPort", settings.get("clientPort", ""))
    if not settings.get("dataDir") or not port.isdecimal():
        raise ConfigError(f"{path} names no dataDir, or neither clientPort nor secureClientPort")
    if "secureClientPort" in settings and "clientPort" in settings:
        raise ConfigError(f"{path}: a clientPort beside secureClientPort serves everyone in the clear; remove it")
    return settings


class ZooKeeperProcess:
    """One ZooKeeper server, with its data in the configured directory. The data survives a restart.

    Args:
        path: a ``zoo.cfg``.
        log: file to which the server's output is appended.
        options: additional options for Java, for example ``-Dzookeeper.forceSync=no``.
        jars: replace the jars found by `find_jars`.

    Raises:
        ConfigError: Java, the jars, or the configuration are missing.
    """

    def __init__(self, path: Path, log: Path, options: Sequence[str] = (), jars: Sequence[Path] = ()) -> None:
        settings = read_configuration(path)
        secure = "secureClientPort" in settings
        self.host = settings.get("secureClientPortAddress" if secure else "clientPortAddress", "127.0.0.1")
        self.port = int(settings["secureClientPort" if secure else "clientPort"])
        self.process: subprocess.Popen[bytes] | None = None
        self._data = Path(settings["dataDir"])
        self._log = log
        self._settings = settings
        self._command = [find_java(), HEAP, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true", *options]
        if JAAS_SETTING in settings:
            self._command.append(f"-Djava.security.auth.login.config={settings[JAAS_SETTING]}")
        needed = [*(jars or find_jars()), *(find_jars(NETTY_JARS) if secure else ())]
        self._command += ["-cp", ":".join(map(str, needed)), MAIN_CLASS, str(path)]

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def start(self) -> None:
        """Start the server and wait until it serves. On Linux it ends with the thread that calls this.

        Raises:
            EnvironmentFault: the server does not serve. The message has the server's reason if it gives one.
        """
        if self._answers():
            raise EnvironmentFault(f"another server listens on {self.address}; stop it, or change clientPort")
        self._data.mkdir(parents=True, exist_ok=True)
        with open(self._log, "ab") as output:
            self.process = process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # A separate session, so that Ctrl-C at the terminal reaches only this process.
                start_new_session=True,
                preexec_fn=_die_with_parent(),
            )
        self._wait_serving(process)

    def _wait_serving(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while process.poll() is None:
            if self._answers():
                return
            if time.monotonic() > deadline:
                self.kill()
                raise EnvironmentFault(f"ZooKeeper does not serve on {self.address} within {START_LIMIT_S:.0f} s{self._reason()}")
            time.sleep(POLL_S)
        self.process = None
        raise EnvironmentFault(f"ZooKeeper does not start{self._reason()}")

    def _reason(self) -> str:
        lines = [line for line in self._log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        causes = [line for line in lines if "Exception" in line and not line.startswith(("\t", " "))]
        return f": {(causes or lines or ['it wrote nothing'])[-1]} (its log: {self._log})"

    def _answers(self) -> bool:
        """Whether the server answers. It listens for a moment before it serves, and does not answer connections made then."""
        context = probe_context(self._settings)
        try:
            with socket.create_connection((self.host, self.port), timeout=1) as plain:
                return _serves(plain if context is None else context.wrap_socket(plain))
        except OSError:
            return False

    def kill(self) -> None:
        """End the server without notice, as in a crash."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """End the server in order. Acknowledged changes are on disk in either case."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(timeout=STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None


def _serves(connection: socket.socket | ssl.SSLSocket) -> bool:
    with connection:
        connection.sendall(b"srvr")
        return b"Zookeeper version" in connection.recv(4096)


def _die_with_parent() -> Callable[[], None] | None:
    """For Linux: a function that the child calls before it executes Java, so that the kernel ends it when its parent dies."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def before_java() -> None:
        library.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(70)

    return before_java
