"""Three machines, each with a bookie, a database node and perhaps a ZooKeeper server: as addresses of the loopback interface, or as network
namespaces (`network`).
"""

from __future__ import annotations

import shutil
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from benchmarks.ledger.processes import CaseFailed, Process, free_port, wait_for_port
from benchmarks.machines.network import Network
from triplicate.cli.supervision.zookeeper_process import HEAP, MAIN_CLASS, configuration, find_jars, find_java
from triplicate.config import to_toml
from triplicate.metadata import DEFAULT_ROOT

MACHINES = 3
START_LIMIT_S = 90.0
SESSION_LIMIT_MS = 40_000
"""Longest session that ZooKeeper grants; its default depends on its unit of time."""
POLL_S = 0.02


@dataclass
class Machine:
    """One address with its ports and processes."""

    number: int
    address: str
    client_port: int = field(default_factory=free_port)
    quorum_port: int = field(default_factory=free_port)
    election_port: int = field(default_factory=free_port)
    bookie_port: int = field(default_factory=free_port)
    node_port: int = field(default_factory=free_port)
    resp_port: int = field(default_factory=free_port)
    """Where the node serves clients of Redis."""
    processes: dict[str, Process] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"machine-{self.number}"


class Fleet:
    """The machines. Use it as a context manager; leaving it kills every process.

    Args:
        folder: parent of the machines' files; emptied first.
        tick_ms: ZooKeeper's unit of time; sessions last at least two ticks.
        sync_limit: ticks after which ZooKeeper's servers give a silent one of them up.
        store: ``zookeeper``, or ``embedded`` for one file that all machines share.
        network: the machines' network; None for addresses of the loopback interface.
    """

    def __init__(
        self, folder: Path, *, tick_ms: int = 2000, sync_limit: int = 5, store: str = "zookeeper", network: Network | None = None
    ) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self.folder = folder
        self.tick_ms, self.sync_limit = tick_ms, sync_limit
        self.network = network
        self.has_zookeeper = store == "zookeeper"
        self.machines = [Machine(number, self._address(number)) for number in range(1, MACHINES + 1)]
        servers = ";".join(f"{one.address}:{one.client_port}" for one in self.machines)
        self.uri = f"zk://{servers}{DEFAULT_ROOT}" if self.has_zookeeper else f"sqlite://{folder / 'metadata.db'}"

    def _address(self, number: int) -> str:
        return f"127.0.0.{number + 1}" if self.network is None else self.network.address(number)

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for machine in self.machines:
            for process in machine.processes.values():
                process.kill()

    @property
    def node_hosts(self) -> str:
        """Hosts and ports of all nodes for libpq."""
        return f"host={','.join(one.address for one in self.machines)} port={','.join(str(one.node_port) for one in self.machines)}"

    def start(self) -> None:
        """Start all processes, and make the cluster.

        Raises:
            CaseFailed: a process does not serve in time.
        """
        for machine in self.machines:
            self._write(machine)
            if self.has_zookeeper:
                self.start_zookeeper(machine)
        self.await_zookeeper()
        self.run_command("cluster", "init", self.uri)
        for kind in ("bookie", "node"):
            for machine in self.machines:
                self._begin(machine, kind)
            for machine in self.machines:
                self._await(machine, kind)

    def restart(self, machine: Machine) -> None:
        """Start a machine's missing processes, and wait until they serve."""
        if self.has_zookeeper and not machine.processes["zookeeper"].is_running:
            self.start_zookeeper(machine)
        self.await_zookeeper()
        for kind in ("bookie", "node"):
            if not machine.processes[kind].is_running:
                self._begin(machine, kind)
                self._await(machine, kind)

    def kill(self, machine: Machine) -> None:
        """Kill all of a machine's processes at once, as in a power failure."""
        for process in machine.processes.values():
            process.popen.kill()
        for process in machine.processes.values():
            process.kill()

    def stop(self, machine: Machine) -> None:
        """Stop all of a machine's processes, as a machine that hangs; their kernel still answers."""
        for process in machine.processes.values():
            process.popen.send_signal(signal.SIGSTOP)

    def resume(self, machine: Machine) -> None:
        for process in machine.processes.values():
            process.popen.send_signal(signal.SIGCONT)

    def start_zookeeper(self, machine: Machine) -> None:
        folder = self.folder / machine.name
        command = [find_java(), HEAP, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]
        command += ["-cp", ":".join(map(str, find_jars())), MAIN_CLASS, str(folder / "zoo.cfg")]
        machine.processes["zookeeper"] = Process(f"{machine.name} zookeeper", self._on(machine, command), folder / "zookeeper.log")

    def _on(self, machine: Machine, command: list[str]) -> list[str]:
        """The command on a machine."""
        return command if self.network is None else self.network.command(machine.number, command)

    def await_zookeeper(self) -> None:
        """Return when every running server serves."""
        deadline = time.monotonic() + START_LIMIT_S
        while not all(mode_of(one) for one in self.machines if "zookeeper" in one.processes and one.processes["zookeeper"].is_running):
            if time.monotonic() > deadline:
                raise CaseFailed("ZooKeeper's servers do not serve: " + self.machines[0].processes["zookeeper"].last_words())
            time.sleep(POLL_S)

    def zookeeper_leader(self) -> Machine:
        """The machine whose ZooKeeper server leads."""
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline:
            for machine in self.machines:
                if mode_of(machine) == "leader":
                    return machine
            time.sleep(POLL_S)
        raise CaseFailed("no ZooKeeper server leads")

    def machine_at(self, port: int) -> Machine:
        """The machine whose database node listens on a port."""
        return next(one for one in self.machines if one.node_port == port)

    def run_command(self, *arguments: str) -> None:
        """Run one of Triplicate's commands to its end."""
        process = Process("command", [sys.executable, "-m", "triplicate.cli.main", *arguments], self.folder / "commands.log")
        if process.popen.wait(timeout=START_LIMIT_S):
            raise CaseFailed(f"{' '.join(arguments)}: {process.last_words()}")

    def _begin(self, machine: Machine, kind: str) -> None:
        folder = self.folder / machine.name
        command = [sys.executable, "-m", "triplicate.cli.main", kind, "--config", str(folder / f"{kind}.toml")]
        machine.processes[kind] = Process(f"{machine.name} {kind}", self._on(machine, command), folder / f"{kind}.log")

    def _await(self, machine: Machine, kind: str) -> None:
        port = machine.bookie_port if kind == "bookie" else machine.node_port
        wait_for_port(port, machine.processes[kind], host=machine.address)

    def _write(self, machine: Machine) -> None:
        folder = self.folder / machine.name
        (folder / "zookeeper").mkdir(parents=True)
        (folder / "zookeeper" / "myid").write_text(f"{machine.number}\n")
        peers = {f"server.{one.number}": f"{one.address}:{one.quorum_port}:{one.election_port}" for one in self.machines}
        own: dict[str, object] = {"clientPortAddress": machine.address, "tickTime": self.tick_ms, "syncLimit": self.sync_limit}
        own["maxSessionTimeout"] = SESSION_LIMIT_MS
        text = configuration(folder / "zookeeper", machine.client_port, **own, **peers)
        (folder / "zoo.cfg").write_text(text)
        metadata = {"uri": self.uri}
        bookie = {
            "bookie_id": f"bookie-{machine.number}",
            "host": machine.address,
            "port": machine.bookie_port,
            "journal_directories": (str(folder / "journal"),),
            "ledger_directories": (str(folder / "ledgers"),),
        }
        node = {"node_id": f"node-{machine.number}", "host": machine.address, "port": machine.node_port, "directory": str(folder / "node")}
        (folder / "bookie.toml").write_text(to_toml({"bookie": bookie, "metadata": metadata}, comment=machine.name))
        resp = {"serve": True, "port": machine.resp_port}
        (folder / "node.toml").write_text(to_toml({"node": node, "resp": resp, "metadata": metadata}, comment=machine.name))


def mode_of(machine: Machine) -> str:
    """The role that a ZooKeeper server reports: leader, follower, or empty while it does not serve.

    Source: ZooKeeper Administrator's Guide, `srvr`.
    """
    try:
        with socket.create_connection((machine.address, machine.client_port), timeout=1) as connection:
            connection.sendall(b"srvr")
            answer = b""
            while chunk := connection.recv(4096):
                answer += chunk
    except OSError:
        return ""
    return next((line.removeprefix("Mode: ") for line in answer.decode(errors="replace").splitlines() if line.startswith("Mode: ")), "")
