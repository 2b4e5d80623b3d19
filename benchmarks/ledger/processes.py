"""Processes with a log and an orderly end, the clients' protocol, and the sides of the comparison.

Every process is ended by its own id. Both clients read one JSON object per line, ``{"do": "append", …}``, and answer with
``{"ok": {…}}`` or ``{"error": "…"}``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from triplicate.cli.supervision.cluster_folder import free_ports

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "bench"
START_LIMIT_S = 90.0
STOP_LIMIT_S = 60.0
POLL_S = 0.01


_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>
_prctl = ctypes.CDLL(None).prctl


class CaseFailed(Exception):
    """A measurement failed, with the reason."""


FAILURES = (CaseFailed, subprocess.TimeoutExpired, OSError)
"""Reported as the failure of a case; the run continues."""


_ports_given: set[int] = set()


def free_port() -> int:
    """A port outside the system's ephemeral range, so that a killed bookie's port is still free at its restart."""
    (port,) = free_ports(1, taken=_ports_given)
    _ports_given.add(port)
    return port


def wait_for_port(port: int, process: Process, limit_s: float = START_LIMIT_S, *, host: str = "127.0.0.1") -> None:
    """Wait until a process listens there.

    Raises:
        CaseFailed: the process ended first, or the time ran out.
    """
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and process.is_running:
        try:
            with socket.create_connection((host, port), timeout=1):
                return
        except OSError:
            time.sleep(POLL_S)
    raise CaseFailed(f"{process.name} does not serve: {process.last_words()}")


class Process:
    """One process of a side.

    Args:
        environment: variables besides this process's own, whose settings of Triplicate are left out.
        account: options of `subprocess.Popen` that run it as another user.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        stdin: int = subprocess.DEVNULL,
        stdout: int | None = None,
        environment: Mapping[str, str] | None = None,
        account: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            self.popen = subprocess.Popen(
                list(command),
                stdin=stdin,
                stdout=errors if stdout is None else stdout,
                stderr=errors,
                cwd=ROOT,
                env={**_environment(), **(environment or {})},
                preexec_fn=_die_with_parent,
                **(account or {}),
            )

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def is_running(self) -> bool:
        return self.popen.poll() is None

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it said nothing; exit code {self.popen.poll()}"

    def stop(self) -> None:
        """End it by SIGTERM, and by SIGKILL if it does not end in time."""
        if self.is_running:
            self.popen.terminate()
            try:
                self.popen.wait(timeout=STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                self.popen.kill()
        self._bury()

    def kill(self) -> None:
        if self.is_running:
            self.popen.kill()
        self._bury()

    def _bury(self) -> None:
        self.popen.wait()
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def _die_with_parent() -> None:
    """Have the kernel end the child with its parent, also if the run is killed."""
    _prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def _environment() -> dict[str, str]:
    """This process's environment without settings of a developer's shell."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TRIPLICATE_")}


class Driver(Process):
    """A client of either kind."""

    def __init__(self, name: str, command: Sequence[str], log: Path, *, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(name, command, log, stdin=subprocess.PIPE, stdout=subprocess.PIPE, environment=environment)
        self._answers: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, name=f"answers of {name}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self._answers.put(line)
        self._answers.put(b"")

    def _bury(self) -> None:
        # The thread reads until the process ends; its pipe must not be closed before.
        self.popen.wait()
        self._reader.join()
        super()._bury()

    def send(self, do: str, **arguments: object) -> None:
        """Send a command; `answer` waits for its end."""
        assert self.popen.stdin is not None
        try:
            self.popen.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self.popen.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise CaseFailed(f"{self.name} ended: {self.last_words()}") from None

    def answer(self, limit_s: float) -> dict[str, Any]:
        """The answer. Raises CaseFailed if the command fails or is late; a late client is killed, as its next answer would be this one."""
        try:
            line = self._answers.get(timeout=limit_s)
        except queue.Empty:
            self.kill()
            raise CaseFailed(f"{self.name} gave no answer within {limit_s:.0f} s") from None
        if not line:
            raise CaseFailed(f"{self.name} ended: {self.last_words()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise CaseFailed(f"{self.name}: {answer['error']}")
        found: dict[str, Any] = answer["ok"]
        return found

    def ask(self, do: str, *, limit_s: float, **arguments: object) -> dict[str, Any]:
        self.send(do, **arguments)
        return self.answer(limit_s)


class Side(ABC):
    """One of the compared sides: its bookies, and its kind of client. Only one side runs at a time.

    `zookeeper` is ``host:port``; the cluster's root is named after the side and the turn, so that each turn has an empty cluster.
    """

    name: str
    bookies_wanted = 3
    reads_batches = True

    def __init__(self, zookeeper: str, folder: Path, turn: str) -> None:
        self.zookeeper = zookeeper
        self.turn = turn
        self.uri = f"zk+hierarchical://{zookeeper}/{turn}"
        self.folder = folder
        self.logs = BUILD / "logs" / turn
        self.bookies: dict[str, Process] = {}
        self.ports: dict[str, int] = {}
        self.drivers: dict[str, Driver] = {}
        self.others: dict[str, Side] = {}
        """Further clusters of the same side; see `beside`."""

    @abstractmethod
    def initialise(self) -> None:
        """Make the cluster's metadata."""

    @abstractmethod
    def bookie_command(self, name: str, folder: Path, port: int) -> list[str]:
        """Command line of a bookie."""

    @abstractmethod
    def client_command(self) -> list[str]:
        """Command line of a client."""

    @abstractmethod
    def client_settings(self, *, explicit_lac_ms: int = 0) -> Mapping[str, object]:
        """Settings of a client's connection."""

    def start(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.initialise()
        names = [f"bookie-{number}" for number in range(1, self.bookies_wanted + 1)]
        for name in names:
            self.begin_bookie(name)
        for name in names:
            wait_for_port(self.ports[name], self.bookies[name])

    def begin_bookie(self, name: str) -> None:
        """Start one bookie, on its former data if it ran before."""
        port = self.ports.setdefault(name, free_port())
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        self.bookies[name] = Process(name, self.bookie_command(name, folder, port), self.logs / f"{name}.log")

    def start_bookie(self, name: str) -> float:
        """Start one bookie; return the seconds until it serves."""
        started = time.monotonic()
        self.begin_bookie(name)
        wait_for_port(self.ports[name], self.bookies[name])
        return time.monotonic() - started

    def client(self, name: str = "client") -> Driver:
        """The client of that name, started at its first use, and again after its end."""
        driver = self.drivers.get(name)
        if driver is None or not driver.is_running:
            driver = Driver(name, self.client_command(), self.logs / f"{name}.log")
            self.drivers[name] = driver
            self.connect(driver)
        return driver

    def connect(self, driver: Driver, *, explicit_lac_ms: int = 0) -> None:
        """Connect a client; an existing connection is replaced."""
        settings = self.client_settings(explicit_lac_ms=explicit_lac_ms)
        # Bookies register an instant after they serve, so the first attempt may come too early to create; see `cases.created`.
        driver.ask("connect", limit_s=START_LIMIT_S, uri=self.uri, settings=settings)

    def data_folders(self) -> list[Path]:
        """Journals and ledgers of all bookies."""
        return [self.folder / name / kind for name in self.bookies for kind in ("journal", "ledgers")]

    def ledger_folders(self) -> list[Path]:
        """Folders of ledgers of all bookies."""
        return [self.folder / name / "ledgers" for name in self.bookies]

    def beside(self, name: str) -> Side:
        """Start another cluster of this side, with separate bookies and clients; it ends with this one."""
        other = type(self)(self.zookeeper, self.folder.with_name(f"{self.folder.name}-{name}"), f"{self.turn}-{name}")
        self.others[name] = other
        other.start()
        return other

    def own_pids(self) -> dict[str, int]:
        """Process ids of this cluster's bookies and clients, by name."""
        return {name: process.pid for name, process in (*self.bookies.items(), *self.drivers.items()) if process.popen.returncode is None}

    def pids(self) -> dict[str, int]:
        """Process ids of this and the further clusters, those under names such as bookie-1-many."""
        found = self.own_pids()
        for suffix, other in list(self.others.items()):
            found.update((f"{name}-{suffix}", pid) for name, pid in other.pids().items())
        return found

    def stop(self) -> None:
        for other in self.others.values():
            other.stop()
        for driver in self.drivers.values():
            driver.kill()
        for bookie in self.bookies.values():
            bookie.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
