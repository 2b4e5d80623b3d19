"""Kills servers during the load, at critical moments, and starts one of them again."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psutil

from triplicate.cli import LocalCluster, remarks

KILL_BOOKIE_AT = 3
KILL_LEADER_AT = 6
RESTART_AT = 9
"""Numbers of the batches during which servers are killed or restarted."""


class ServerKiller:
    """Called by the loader while a transaction is open.

    Args:
        cluster: the cluster whose processes it kills with SIGKILL.
        ensemble: returns the bookies that the database's log is written to now.
    """

    def __init__(self, cluster: LocalCluster, ensemble: Callable[[], list[str]]) -> None:
        self._cluster = cluster
        self._ensemble = ensemble
        self._done: set[str] = set()
        self.killed: list[str] = []
        self.restarted_at: dict[str, int] = {}
        self.killed_bookie = ""
        self.killed_node = ""

    def act(self, batch: int, leader_port: int) -> None:
        """Carry out the actions that are due at this batch, each once, also when a batch is repeated.

        Args:
            leader_port: port of the database node that runs the open transaction.
        """
        if batch >= KILL_BOOKIE_AT and self._first("bookie"):
            self.killed_bookie = self._ensemble()[0]
            self._kill(self.killed_bookie, f"batch {batch} is open")
        if batch >= KILL_LEADER_AT and self._first("leader"):
            self.killed_node = next(one.name for one in self._cluster.folder.members if one.port == leader_port)
            self._kill(self.killed_node, f"the leader, with the transaction of batch {batch} in flight")
        if batch >= RESTART_AT and self._first("restart"):
            self.restart()

    def restart(self) -> None:
        """Start the killed database node again, and note the position of its own copy."""
        self._cluster.start(self.killed_node)
        facts = self._cluster.running[self.killed_node].facts
        positions = facts.get("positions")
        assert isinstance(positions, dict), "a database node reports the positions of its databases when it is ready"
        self.restarted_at[self.killed_node] = max(positions.values(), default=0)
        remarks.print(f"  started {self.killed_node} again; its copy stands at position {self.restarted_at[self.killed_node]:,}")

    def _first(self, what: str) -> bool:
        if what in self._done:
            return False
        self._done.add(what)
        return True

    def _kill(self, name: str, why: str) -> None:
        self._cluster.kill(name)
        self.killed.append(name)
        remarks.print(f"  SIGKILL to {name} ({why})")


class MemoryWatch:
    """Samples the resident memory of this process and all its descendants; `peak_bytes` is the greatest sum seen."""

    def __init__(self, interval_s: float = 0.5) -> None:
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory-watch", daemon=True)
        self.peak_bytes = 0

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(self._interval_s):
            self.peak_bytes = max(self.peak_bytes, _resident_bytes())


def _resident_bytes() -> int:
    total = 0
    own = psutil.Process()
    for process in [own, *own.children(recursive=True)]:
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue  # It ended after it was listed.
    return total
