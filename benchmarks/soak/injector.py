"""Injects the planned faults into a cluster, one at a time, and undoes each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.histories.cluster import RunFailed, wait_for
from benchmarks.soak.fault_plan import FaultKind, PlannedFault
from benchmarks.soak.fault_proxy import ProxyThread
from benchmarks.soak.restoring import Restorer
from benchmarks.soak.soaked_cluster import FULL_OPTIONS, SMALL_DISK, SoakedCluster, stopped

DELAY_S = 0.2
CUT_EVERY_S = 0.5
POLL_S = 0.2
LEADER_LIMIT_S = 60.0
REPLACE_LIMIT_S = 60.0
"""The registration of a killed bookie lasts until its session ends, and its disks are not replaced before."""
GAP_LIMIT_S = 90.0
"""Longest time after a fault in which a client has no acknowledgement."""


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault that took place.

    Args:
        begun_s: seconds from the start of the load.
        appends_gap_s: time until each log had acknowledged an append that was begun after the fault; None if none did within the limit.
        writes_gap_s: the same for the writes of the database's clients.
    """

    fault: PlannedFault
    begun_s: float
    appends_gap_s: float | None
    writes_gap_s: float | None


Elapse = Callable[[float], None]
"""Lets the run go on until an instant of the monotonic clock: samples are taken meanwhile."""
FirstAfter = Callable[[float], float | None]
"""The instant of the first acknowledgement of an operation begun after an instant; None while there is none."""


class Injector:
    """See the module's text. Used by one thread, which must be the one that ends the processes.

    Args:
        elapse: see `Elapse`.
        database: faults of nodes strike its leader.
    """

    def __init__(self, cluster: SoakedCluster, proxies: ProxyThread, restorer: Restorer, elapse: Elapse, database: str) -> None:
        self._cluster = cluster
        self._proxies = proxies
        self._restorer = restorer
        self._elapse = elapse
        self._database = database

    def inject(self, fault: PlannedFault) -> None:
        """Inject a fault, keep it for its duration, and undo it."""
        carry_out = {
            FaultKind.KILL: self._kill,
            FaultKind.STOP: self._stop,
            FaultKind.DELAY: self._delay,
            FaultKind.DROP: self._drop,
            FaultKind.CUT: self._cut,
            FaultKind.FULL: self._fill,
            FaultKind.WIPE: self._wipe,
            FaultKind.REPLACE: self._replace_disks,
            FaultKind.DECOMMISSION: self._decommission,
            FaultKind.NODE_KILL: self._kill_node,
            FaultKind.NODE_STOP: self._stop_node,
        }[fault.kind]
        carry_out(fault)

    def _last(self, fault: PlannedFault) -> None:
        self._elapse(time.monotonic() + fault.lasts_s)

    def _kill(self, fault: PlannedFault) -> None:
        self._cluster.kill(self._cluster.bookies[fault.place].process)
        self._last(fault)
        self._cluster.restart_bookie(fault.place)

    def _stop(self, fault: PlannedFault) -> None:
        with stopped(self._cluster.bookies[fault.place].process):
            self._last(fault)

    def _delay(self, fault: PlannedFault) -> None:
        proxy = self._cluster.bookies[fault.place].proxy
        self._proxies.run(proxy.set_delay(DELAY_S))
        self._last(fault)
        self._proxies.run(proxy.set_delay(0.0))

    def _drop(self, fault: PlannedFault) -> None:
        proxy = self._cluster.bookies[fault.place].proxy
        self._proxies.run(proxy.hold())
        self._last(fault)
        # The bytes that were held arrive only if their connections are kept; a network that dropped them breaks the connections.
        self._proxies.run(proxy.cut())
        self._proxies.run(proxy.release())

    def _cut(self, fault: PlannedFault) -> None:
        proxy = self._cluster.bookies[fault.place].proxy
        ends_s = time.monotonic() + fault.lasts_s
        while time.monotonic() < ends_s:
            self._proxies.run(proxy.cut())
            self._elapse(min(ends_s, time.monotonic() + CUT_EVERY_S))

    def _fill(self, fault: PlannedFault) -> None:
        if self._cluster.mounted and fault.place == SMALL_DISK:
            self._cluster.fill_small_disk()
            self._last(fault)
            self._cluster.free_small_disk()
            return
        bookie = self._cluster.bookies[fault.place]
        self._cluster.terminate(bookie.process)
        self._cluster.restart_bookie(fault.place, *FULL_OPTIONS)
        self._last(fault)
        self._cluster.terminate(bookie.process)
        self._cluster.restart_bookie(fault.place)

    def _wipe(self, fault: PlannedFault) -> None:
        self._await_restored()
        lost = self._cluster.bookies[fault.place]
        self._cluster.kill(lost.process)
        self._cluster.retire(lost)
        self._last(fault)
        self._cluster.place_bookie(fault.place, lost.generation + 1)
        self._restorer.await_healed(lost.bookie_id)

    def _replace_disks(self, fault: PlannedFault) -> None:
        """The bookie keeps its id, begins in limbo, and is refilled while writers live that name it."""
        self._await_restored()
        bookie = self._cluster.bookies[fault.place]
        self._cluster.kill(bookie.process)
        self._cluster.empty_disks(bookie)
        self._last(fault)
        ends_s = time.monotonic() + REPLACE_LIMIT_S
        while not self._cluster.try_replace(bookie):
            if time.monotonic() > ends_s:
                raise RunFailed(f"the disks of {bookie.bookie_id} cannot be replaced within {REPLACE_LIMIT_S:.0f} s")
            self._elapse(time.monotonic() + POLL_S)
        self._cluster.restart_bookie(fault.place)
        self._restorer.restore(bookie.bookie_id, "bookie", "refill")

    def _decommission(self, fault: PlannedFault) -> None:
        self._await_restored()
        leaving = self._cluster.bookies[fault.place]
        self._cluster.place_bookie(fault.place, leaving.generation + 1)
        self._last(fault)
        self._restorer.restore(leaving.bookie_id, "bookie", "decommission")
        self._await_restored()
        self._cluster.terminate(leaving.process)
        self._cluster.retire(leaving)

    def _await_restored(self) -> None:
        """Wait until no copies are being restored: the disks of a second bookie may hold the last copies."""
        while self._restorer.is_busy:
            self._elapse(time.monotonic() + POLL_S)

    def _kill_node(self, fault: PlannedFault) -> None:
        name = self._leader()
        self._cluster.kill(self._cluster.nodes[name])
        self._last(fault)
        self._cluster.start_node(name)

    def _stop_node(self, fault: PlannedFault) -> None:
        with stopped(self._cluster.nodes[self._leader()]):
            self._last(fault)

    def _leader(self) -> str:
        name: str = wait_for(lambda: self._cluster.leader(self._database), "a node leads", LEADER_LIMIT_S)
        return name
