"""Faults of the cluster while clients work: the leader and bookies are killed, terminated or stopped, or its machine is cut off."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from benchmarks.histories.clients import Shared
from benchmarks.histories.cluster import FaultyCluster, RunFailed, wait_for
from benchmarks.histories.stages import Stages
from benchmarks.histories.windows import await_open

CALM_S = 2.0
"""Pause between the end of one fault and the next, in seconds."""
BESIDE_S = 0.5
"""A bookie hangs for this long, in seconds, before the leader's fault."""
GAP_LIMIT_S = 60.0
WINDOW_LIMIT_S = 4.0
"""Longest wait of a fault for a window of groups, in seconds."""
AFTERMATH_S = 1.0
"""A stage goes on for this long after its fault, in seconds: a leader that comes back has then answered what waited for it."""
POLL_S = 0.01


class Cut(StrEnum):
    """Connections that a leader's machine loses."""

    NONE = ""
    ALL = "all"
    MACHINES = "machines"
    """Those to other machines. Clients still reach it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    Args:
        leader: seconds for which the leader is stopped; 0 for no fault, `KILL` for SIGKILL, `TERMINATE` for SIGTERM.
        bookie: the same for one bookie.
        cut: the leader's machine is cut off, for `leader` seconds.
    """

    name: str
    leader: float
    bookie: float = 0.0
    cut: Cut = Cut.NONE


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
CUTS = (
    Fault("leader's machine cut off for 8 s", 8.0, cut=Cut.ALL),
    Fault("leader cut off from machines, not clients, for 8 s", 8.0, cut=Cut.MACHINES),
    Fault("leader's machine cut off for 2.5 s", 2.5, cut=Cut.ALL),
)
"""Faults of a cluster on machines."""


@dataclass(frozen=True)
class Target:
    """Clients whose leader is hit.

    Args:
        name: of the database or store.
        leader: returns the name of the node that leads, if any.
    """

    name: str
    leader: Callable[[], str | None]
    shared: Shared


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
    target: str = ""
    """The database or store whose leader was hit."""


class Nemesis:
    """Injects faults into a cluster, one at a time, and undoes each before the next.

    Args:
        targets: the faults hit their leaders in turn.
        windows: where nodes note their windows of groups; each fault then waits for one, for a while.
    """

    def __init__(self, cluster: FaultyCluster, targets: Sequence[Target], stages: Stages, windows: Path | None = None) -> None:
        self._windows = windows
        self._cluster = cluster
        self._targets = targets
        self._stages = stages
        self._rounds = 0
        self._count = 0
        self.injected: list[InjectedFault] = []

    def round(self, faults: Sequence[Fault]) -> None:
        """Inject each fault once. In the next round each hits the leader of the next target.

        Raises:
            RunFailed: the cluster did not recover.
        """
        for number, fault in enumerate(faults, self._rounds):
            self._stages.begin(fault.name)
            self._await_calm()
            self.injected.append(self._inject(fault, self._targets[number % len(self._targets)]))
            time.sleep(AFTERMATH_S)
        self._rounds += 1

    def _await_calm(self) -> None:
        """Wait until all processes run, nodes lead, writes succeed, and every node has had an answer from the leader.

        A node that starts while the leader hangs would never have had one.
        """
        cluster, targets = self._cluster, self._targets
        wait_for(lambda: cluster.is_running and all(target.leader() for target in targets), "every process runs, and nodes lead")
        time.sleep(CALM_S)
        now = time.monotonic()
        for target in self._targets:
            wait_for(lambda shared=target.shared: shared.first_write_after(now), f"writes of {target.name} are acknowledged")  # type: ignore[misc]

    def _inject(self, fault: Fault, target: Target) -> InjectedFault:
        leader = wait_for(target.leader, "a node leads")
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
        if fault.cut:
            self._cluster.cut(leader, fault.leader, from_clients=fault.cut is Cut.ALL)
            began = time.monotonic()  # Writes are acknowledged until the last of several connections is cut.
        else:
            self._hit(leader if fault.leader else bookie, fault.leader or fault.bookie)
        end = self._first_write_after(began, target)
        successor = wait_for(target.leader, "a node leads")
        time.sleep(max(0.0, began + max(fault.leader, fault.bookie) - time.monotonic()))
        return InjectedFault(fault, end - began, leader, successor, injected_at, began, target.name)

    def _hit(self, name: str, stopped_s: float) -> None:
        if stopped_s in SIGNALS:
            self._cluster.send(name, SIGNALS[stopped_s])
        else:
            self._cluster.stop(name, stopped_s)

    def _first_write_after(self, moment: float, target: Target) -> float:
        while (end := target.shared.first_write_after(moment)) is None:
            if time.monotonic() > moment + GAP_LIMIT_S:
                raise RunFailed(f"no write of {target.name} is acknowledged within {GAP_LIMIT_S:.0f} s of a fault")
            time.sleep(POLL_S)
        return end
