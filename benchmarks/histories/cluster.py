"""A cluster of real processes in a folder that can be killed and stopped: `triplicate up`, which restarts killed ones."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

from triplicate.replica.failure_detector import PROBE

START_LIMIT_S = 120.0
STOP_LIMIT_S = 60.0
POLL_S = 0.05
ANSWER_LIMIT_S = 0.3
"""A node without an answer within this time is skipped."""
LOOPBACK = "127.0.0.1"
RESP_PORT = re.compile(r"resp[=\"': ]+127\.0\.0\.1:(\d+)")
"""The port for clients of Redis, in the log of a node."""
Address = tuple[str, int]
"""Host and port."""


class RunFailed(Exception):
    """The run failed, with the reason."""


class DatabaseNodes:
    """Database nodes, which listen on 127.0.0.1 unless `addresses` says otherwise.

    Attributes:
        ports: by name of node.
    """

    ports: dict[str, int]

    @property
    def addresses(self) -> dict[str, Address]:
        """Addresses of the database server by name of node."""
        return {name: (LOOPBACK, port) for name, port in self.ports.items()}

    @contextlib.contextmanager
    def session(self, name: str, database: str) -> Iterator[psycopg.Connection[Any]]:
        """A connection to one node, leader or follower."""
        host, port = self.addresses[name]
        dsn = f"host={host} port={port} dbname={database} user=judge connect_timeout=2"
        connection = psycopg.connect(dsn, autocommit=True)
        try:
            yield connection
        finally:
            connection.close()

    def leader(self, database: str) -> str | None:
        """The node that reports itself as leader of a database, if any."""
        for name, address in self.addresses.items():
            if not answers(address):
                continue
            with contextlib.suppress(psycopg.Error), self.session(name, database) as session:
                row = session.execute("show transaction_read_only").fetchone()
                if row is not None and row[0] == "off":
                    return name
        return None


class FaultyCluster(DatabaseNodes, ABC):
    """A cluster of bookies and nodes that faults can hit.

    Attributes:
        bookies: their names.
    """

    bookies: list[str]

    @abstractmethod
    def resp_names(self) -> dict[Address, str]:
        """Names of the nodes by the addresses at which they serve clients of Redis, as far as they are known now."""

    def resp_addresses(self) -> list[Address]:
        """These addresses."""
        return list(self.resp_names())

    @abstractmethod
    def command(self, *arguments: str) -> None:
        """Run one of Triplicate's commands to its end. Raises RunFailed: it failed."""

    @property
    @abstractmethod
    def is_running(self) -> bool:
        """Whether every process runs, and every node answers."""

    def send(self, name: str, number: int) -> None:
        """Send a signal to a process. Raises RunFailed: the cluster has no such fault; also below."""
        raise RunFailed(f"no signal is sent to {name}: nothing would start it again")

    def stop(self, name: str, seconds: float) -> None:
        """Stop a process for some seconds."""
        raise RunFailed(f"{name} is not stopped here")

    def cut(self, name: str, seconds: float, *, from_clients: bool) -> None:
        """Cut the machine of a node off from the other machines for some seconds, and from the clients, too, if wanted."""
        raise RunFailed(f"{name} has no machine of its own that could be cut off")


class LocalCluster(FaultyCluster):
    """Bookies and database nodes on this machine. Use it as a context manager.

    Args:
        folder: must be empty or missing.
        store: the metadata store, ``sqlite`` or ``zk``.
        environment: variables of its processes besides this process's own, whose settings of Triplicate are left out.
        restart: whether processes that end are started again.
    """

    def __init__(
        self,
        folder: Path,
        *,
        bookies: int = 4,
        nodes: int = 3,
        store: str = "sqlite",
        environment: Mapping[str, str] | None = None,
        restart: bool = True,
    ) -> None:
        options = ["--bookies", str(bookies), "--nodes", str(nodes), "--metadata", store, *([] if restart else ["--no-restart"])]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRIPLICATE_")}
        self._environment = {**inherited, **(environment or {})}
        self._folder = folder
        # The cluster ends with this pipe, also if this process is killed.
        ends_with, self._pipe = os.pipe()
        self._errors = (folder.parent / f"{folder.name}.log").open("w")
        self._up = subprocess.Popen(
            [sys.executable, "-m", "triplicate.cli.main", "up", "--dir", str(folder), "--json", "--parent-pipe", str(ends_with), *options],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            pass_fds=(ends_with,),
            text=True,
        )
        os.close(ends_with)
        assert self._up.stdout is not None
        line = self._up.stdout.readline()
        if not line:
            self._up.wait(STOP_LIMIT_S)
            self._up.stdout.close()
            self._close()
            raise RunFailed(f"the cluster did not start: see {self._errors.name}")
        facts = json.loads(line)
        self.uri: str = facts["metadata"]
        addresses: dict[str, str] = {one["name"]: one.get("address", "") for one in facts["processes"]}
        self.bookies = sorted(name for name in addresses if name.startswith("bookie"))
        self.metrics: dict[str, str] = {one["name"]: one.get("metrics", "") for one in facts["processes"]}
        """URL of each process's metrics."""
        self.ports = {name: int(address.rpartition(":")[2]) for name, address in sorted(addresses.items()) if name.startswith("node")}

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for pid in self.processes().values():
            self.go_on(pid)  # A stopped process would not notice the end.
        self._up.terminate()
        try:
            self._up.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._up.kill()  # Its children end with their pipe to it.
            self._up.wait()
        if self._up.stdout is not None:
            self._up.stdout.close()
        self._close()

    def _close(self) -> None:
        os.close(self._pipe)
        self._errors.close()

    def processes(self) -> dict[str, int]:
        """Present process ids by name."""
        found: dict[str, int] = json.loads((self._folder / "processes.json").read_text())["processes"]
        return found

    def resp_names(self) -> dict[Address, str]:
        # A node that starts again chooses another port, and its log names it.
        found = {name: RESP_PORT.findall(self._log_of(name)) for name in self.ports}
        return {(LOOPBACK, int(ports[-1])): name for name, ports in found.items() if ports}

    def _log_of(self, name: str) -> str:
        path = self._folder / name / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def is_running(self) -> bool:
        return set(self.processes()) >= {*self.bookies, *self.ports} and all(map(answers, self.addresses.values()))

    def send(self, name: str, number: int) -> None:
        os.kill(self.processes()[name], number)

    def stop(self, name: str, seconds: float) -> None:
        pid = self.processes()[name]
        self.send(name, signal.SIGSTOP)
        after(seconds, self.go_on, pid)

    def go_on(self, pid: int) -> None:
        """Continue a stopped process; no effect if it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    def command(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "triplicate.cli.main", *arguments, "--metadata", self.uri]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=START_LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env=self._environment,
        )
        if done.returncode:
            raise RunFailed(f"{' '.join(arguments)}: {done.stderr}")


def answers(address: Address) -> bool:
    """Whether the database server at an address answers within a moment."""
    try:
        with socket.create_connection(address, timeout=ANSWER_LIMIT_S) as connection:
            connection.sendall(PROBE)
            return bool(connection.recv(1))
    except OSError:
        return False


def after(seconds: float, work: Callable[..., object], *arguments: object) -> None:
    """Call a function after some seconds, on another thread."""
    timer = threading.Timer(seconds, work, arguments)
    timer.daemon = True
    timer.start()


def wait_for(condition: Callable[[], Any], what: str, limit_s: float = START_LIMIT_S) -> Any:
    """Wait until a condition's value is true, and return the value; an error of an absent server counts as false.

    Raises:
        RunFailed: it does not hold within the limit.
    """
    deadline = time.monotonic() + limit_s
    trouble = ""
    while time.monotonic() < deadline:
        try:
            found = condition()
        except (psycopg.Error, OSError) as error:
            trouble = f" ({error})"
        else:
            if found:
                return found
        time.sleep(POLL_S)
    raise RunFailed(f"not within {limit_s:.0f} s: {what}{trouble}")
