"""The two sides: three members of etcd, and three nodes of ours over three bookies. Each on this machine, with its own syncs."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from pathlib import Path

import psutil
import redis

from benchmarks.histories.cluster import LocalCluster, wait_for
from benchmarks.key_value.driver_build import find_etcd
from benchmarks.ledger.processes import CaseFailed, Process, free_port, wait_for_port

MEMBERS = 3
ETCD = "etcd"
OURS = "triplicate"
STORE = "bench"
LEADER_LIMIT_S = 60.0
SETTINGS = {"TRIPLICATE_RESP_SERVE": "true", "TRIPLICATE_NODE_CONNECTIONS": "1000"}


class Side(ABC):
    """One side while it runs. Use it as a context manager.

    Attributes:
        target: how the load's program speaks to it.
        addresses: for the program; the first is the leader where only the leader is linearizable.
    """

    target = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.addresses: list[str] = []

    def __enter__(self) -> Side:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def start(self) -> None:
        """Start it, and wait until it serves. Raises CaseFailed."""

    @abstractmethod
    def stop(self) -> None:
        """End its processes."""

    @abstractmethod
    def pids(self) -> list[int]:
        """Ids of all its processes."""

    def memory_mib(self) -> float:
        """Resident memory of all its processes."""
        return float(sum(psutil.Process(pid).memory_info().rss for pid in self.pids())) / (1 << 20)

    def processor_s(self) -> float:
        """Processor time of all its processes."""
        times = [psutil.Process(pid).cpu_times() for pid in self.pids()]
        return float(sum(one.user + one.system for one in times))


class EtcdSide(Side):
    """Three members on three pairs of ports, with etcd's defaults."""

    target = "etcd"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._members: list[Process] = []

    def start(self) -> None:
        program = find_etcd()
        ports = [(free_port(), free_port()) for _ in range(MEMBERS)]
        peers = ",".join(f"m{number}=http://127.0.0.1:{peer}" for number, (_, peer) in enumerate(ports))
        for number, (client, peer) in enumerate(ports):
            options = {
                "name": f"m{number}",
                "data-dir": str(self.folder / f"m{number}"),
                "listen-client-urls": f"http://127.0.0.1:{client}",
                "advertise-client-urls": f"http://127.0.0.1:{client}",
                "listen-peer-urls": f"http://127.0.0.1:{peer}",
                "initial-advertise-peer-urls": f"http://127.0.0.1:{peer}",
                "initial-cluster": peers,
                "initial-cluster-state": "new",
                "logger": "zap",
                "log-level": "error",
            }
            command = [program, *(word for name, value in options.items() for word in (f"--{name}", value))]
            self._members.append(Process(f"etcd m{number}", command, self.folder / f"m{number}.log"))
        for member, (client, _) in zip(self._members, ports, strict=True):
            wait_for_port(client, member)
        self.addresses = [f"127.0.0.1:{client}" for client, _ in ports]

    def stop(self) -> None:
        for member in self._members:
            member.stop()

    def pids(self) -> list[int]:
        return [member.pid for member in self._members]


class OurSide(Side):
    """Three bookies and three nodes of `triplicate up`."""

    target = "redis"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._cluster: LocalCluster | None = None

    def start(self) -> None:
        folder = self.folder / "cluster"
        self._cluster = LocalCluster(folder, bookies=3, nodes=MEMBERS, environment=SETTINGS, restart=False)
        self._cluster.command("kv", "create", STORE)
        logs = [folder / name / "log" for name in sorted(self._cluster.ports)]
        addresses = [_resp_address(log.read_text()) for log in logs]
        leader = wait_for(lambda: next((one for one in addresses if _leads(one)), None), "no node leads the store", LEADER_LIMIT_S)
        self.addresses = [leader, *(one for one in addresses if one != leader)]

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.__exit__(None, None, None)

    def pids(self) -> list[int]:
        assert self._cluster is not None, "it was started"
        return list(self._cluster.processes().values())


def _resp_address(log: str) -> str:
    """The address of the port for clients of Redis, which a node prints at its start. Raises CaseFailed."""
    found = re.search(r"resp[=\"': ]+(127\.0\.0\.1:\d+)", log)
    if found is None:
        raise CaseFailed(f"a node has not opened its port for clients of Redis: {log[-300:]}")
    return found[1]


def _leads(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with redis.Redis(host, int(port), protocol=3, socket_timeout=5) as client:
            return bool(client.set("leader", address))
    except redis.RedisError:
        return False
