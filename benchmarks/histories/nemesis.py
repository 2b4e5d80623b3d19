"""Faults of the cluster while clients work: the leader and bookies are killed, terminated, or stopped for a while."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.histories.clients import Shared
from benchmarks.histories.cluster import LocalCluster, RunFailed, answers, wait_for
from benchmarks.histories.windows import await_open

CALM_S = 2.0
"""Pause between the end of one fault and the next, in seconds."""
BESIDE_S = 0.5
"""A bookie hangs for this long, in seconds, before the leader's fault."""
GAP_LIMIT_S = 60.0
WINDOW_LIMIT_S = 4.0
"""Longest wait of a fault for a window of groups, in seconds."""
POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    Args:
        leader: seconds for which the leader is stopped; 0 for no fault, `KILL` for SIGKILL, `TERMINATE` for SIGTERM.
        bookie: the same for one bookie.
    """

    name: str
    leader: float
    bookie: float


KILL = -1.0
TERMINATE = -2.0
SIGNALS = {KILL: signal.SIGKILL, TERMINATE: signal.SIGTERM}
FAULTS = (
    Fault("leader killed", KILL, 0.0),
    Fault("leader stopped for 8 s", 8.0, 0.0),
    Fault("leader terminated", TERMINATE, 0.0),
    Fault("bookie killed", 0.0, KILL),
    Fault("leader stopped for 2.5 s", 2.5, 0.0),
    Fault("leader killed, a bookie stopped for 8 s", KILL, 8.0),
    Fault("bookie stopped for 8 s", 0.0, 8.0),
    Fault("leader and a bookie stopped for 8 s", 8.0, 8.0),
    Fault("leader and a bookie killed", KILL, KILL),
)


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A fault that took place. The gap is the time from the fault to the first acknowledgement of a write begun after it."""

    fault: Fault
    gap_s: float
    leader: str
    successor: str
    injected_at: str = ""
    """Its time in UTC, in the form of the cluster's logs."""
    began_s: float = 0.0
    """The same on the machine's monotonic clock."""


class Nemesis:
    """Injects faults into a cluster, one at a time, and undoes each before the next.

    Args:
        database: the faults hit its leader.
        windows: where nodes note their windows of groups; each fault then waits for one, for a while.
    """

    def __init__(self, cluster: LocalCluster, shared: Shared, database: str, windows: Path | None = None) -> None:
        self._windows = windows
        self._cluster = cluster
        self._shared = shared
        self._database = database
        self._count = 0
        self.injected: list[InjectedFault] = []

    def round(self, faults: Sequence[Fault]) -> None:
        """Inject each fault once.

        Raises:
            RunFailed: the cluster did not recover.
        """
        for fault in faults:
            self._await_calm()
            self.injected.append(self._inject(fault))

    def _await_calm(self) -> None:
        """Wait until all processes run, a node leads, writes succeed, and every node has had an answer from the leader.

        A node that starts while the leader hangs would never have had one.
        """
        wait_for(lambda: self._running() and self._cluster.leader(self._database), "every process runs, and a node leads")
        time.sleep(CALM_S)
        now = time.monotonic()
        wait_for(lambda: self._shared.first_write_after(now), "writes are acknowledged")

    def _running(self) -> bool:
        processes = {*self._cluster.bookies, *self._cluster.ports}
        return set(self._cluster.processes()) >= processes and all(answers(port) for port in self._cluster.ports.values())

    def _inject(self, fault: Fault) -> InjectedFault:
        leader = wait_for(lambda: self._cluster.leader(self._database), "a node leads")
        self._count += 1
        bookie = self._cluster.bookies[self._count % len(self._cluster.bookies)]
        if fault.bookie and fault.leader:
            self._hit(bookie, fault.bookie)
            if fault.bookie > 0:
                time.sleep(BESIDE_S)
        if self._windows is not None:
            await_open(self._windows, WINDOW_LIMIT_S)
        injected_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        began = time.monotonic()
        self._hit(leader if fault.leader else bookie, fault.leader or fault.bookie)
        end = self._first_write_after(began)
        successor = wait_for(lambda: self._cluster.leader(self._database), "a node leads")
        time.sleep(max(0.0, began + max(fault.leader, fault.bookie) - time.monotonic()))
        return InjectedFault(fault, end - began, leader, successor, injected_at, began)

    def _hit(self, name: str, stopped_s: float) -> None:
        if stopped_s in SIGNALS:
            self._cluster.send(name, SIGNALS[stopped_s])
            return
        pid = self._cluster.processes()[name]
        self._cluster.send(name, signal.SIGSTOP)
        timer = threading.Timer(stopped_s, self._cluster.go_on, [pid])
        timer.daemon = True
        timer.start()

    def _first_write_after(self, moment: float) -> float:
        while (end := self._shared.first_write_after(moment)) is None:
            if time.monotonic() > moment + GAP_LIMIT_S:
                raise RunFailed(f"no write is acknowledged within {GAP_LIMIT_S:.0f} s of a fault")
            time.sleep(POLL_S)
        return end
