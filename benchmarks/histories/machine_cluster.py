"""Three machines of a network, each with a bookie and a database node, one of which can be cut off."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

from benchmarks.histories.cluster import Address, FaultyCluster, RunFailed, after, answers
from benchmarks.ledger.processes import CaseFailed
from benchmarks.machines.fleet import Fleet, Machine
from benchmarks.machines.network import Network

TICK_MS, SYNC_LIMIT = 500, 3
"""ZooKeeper's settings: its servers replace a leader of theirs that is silent for 1.5 s."""


class MachineCluster(FaultyCluster):
    """See the module's text. Use it as a context manager.

    Args:
        folder: emptied first.
        store: the metadata store, ``sqlite`` (a file, which a machine that is cut off still reaches) or ``zk`` (a server on each one).
    """

    def __init__(self, folder: Path, network: Network, store: str = "sqlite") -> None:
        self._network = network
        name = "zookeeper" if store == "zk" else "embedded"
        self._fleet = Fleet(folder, store=name, network=network, tick_ms=TICK_MS, sync_limit=SYNC_LIMIT)
        self._machines: dict[str, Machine] = {f"node-{machine.number}": machine for machine in self._fleet.machines}
        self._cut: set[str] = set()
        self._lock = threading.Lock()
        self.ports = {name: machine.node_port for name, machine in self._machines.items()}
        self.bookies = [f"bookie-{machine.number}" for machine in self._fleet.machines]

    def __enter__(self) -> MachineCluster:
        self._fleet.__enter__()
        try:
            self._fleet.start()
        except CaseFailed as error:
            self._fleet.__exit__(type(error), error, None)
            raise RunFailed(f"the machines do not start: {error}") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._fleet.__exit__(kind, error, trace)

    @property
    def addresses(self) -> dict[str, Address]:
        return {name: (machine.address, machine.node_port) for name, machine in self._machines.items()}

    def resp_names(self) -> dict[Address, str]:
        return {(machine.address, machine.resp_port): name for name, machine in self._machines.items()}

    def command(self, *arguments: str) -> None:
        try:
            self._fleet.run_command(*arguments, "--metadata", self._fleet.uri)
        except CaseFailed as error:
            raise RunFailed(str(error)) from error

    @property
    def is_running(self) -> bool:
        processes = [process for machine in self._fleet.machines for process in machine.processes.values()]
        return not self._cut and all(process.is_running for process in processes) and all(map(answers, self.addresses.values()))

    def cut(self, name: str, seconds: float, *, from_clients: bool) -> None:
        number = self._machines[name].number
        with self._lock:
            self._cut.add(name)
            (self._network.cut if from_clients else self._network.part)(number)
        after(seconds, self._join, name, from_clients)

    def _join(self, name: str, was_from_clients: bool) -> None:
        number = self._machines[name].number
        with self._lock:
            (self._network.join if was_from_clients else self._network.reunite)(number)
            self._cut.discard(name)
