"""Restarts of a local cluster's processes: at once after the first end, at growing intervals after repeated ends."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from triplicate.cli.supervision.cluster_folder import ClusterFolder, ClusterMember
from triplicate.cli.supervision.local_processes import RunningProcess
from triplicate.errors import EnvironmentFault
from triplicate.runtime import Backoff

FIRST_S = 0.5
LONGEST_S = 60.0
"""Bounds of the interval between two starts of one process."""
STEADY_S = 60.0
"""After serving for this time, a process starts again with the first interval."""


class Processes(Protocol):
    """The part of `LocalCluster` that a supervisor needs."""

    @property
    def folder(self) -> ClusterFolder: ...
    @property
    def running(self) -> Mapping[str, RunningProcess]: ...
    def launch(self, name: str) -> None: ...
    def newly_ready(self) -> list[RunningProcess]: ...
    def ended(self) -> list[RunningProcess]: ...
    def why_not_started(self, member: ClusterMember) -> str: ...


class Supervisor:
    """Call `poll` several times a second; it does not block.

    Args:
        restart: if False, ends are only reported, with the command that restarts the process.
        report: called with each line for the operator.
        now: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        processes: Processes,
        *,
        restart: bool,
        report: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        self._processes = processes
        self._restart = restart
        self._report = report
        self._now = now
        self._rng = rng or random.Random()
        self._serving_since = dict.fromkeys(processes.running, now())
        self._backoffs: dict[str, Backoff] = {}
        self._due: dict[str, float] = {}
        self.restarts = 0
        """Number of restarts of all processes."""

    def poll(self) -> None:
        """Report processes that ended or serve again, and start those that are due."""
        now = self._now()
        for one in self._processes.newly_ready():
            self._serving_since[one.member.name] = now
            self._report(f"{one.member.name} serves again at {one.facts.get('address', '')} as process {one.process.pid}")
        for one in self._processes.ended():
            self._report_end(one, now)
        for name in [name for name, due in self._due.items() if due <= now]:
            del self._due[name]
            self._launch(name, now)

    def _launch(self, name: str, now: float) -> None:
        try:
            self._processes.launch(name)
        except (EnvironmentFault, OSError) as error:
            self._report(f"{error}; next try in {self._schedule(name, now):.1f} s")
        else:
            self.restarts += 1

    def _report_end(self, one: RunningProcess, now: float) -> None:
        member = one.member
        code = one.process.returncode
        log = self._processes.folder.log_of(member)
        since = self._serving_since.pop(member.name, None)
        if since is None:
            # It never served: its last line has the reason, unless it was killed.
            early = f"{member.name} was killed by signal {-code} before it served (its log: {log})"
            why = early if code < 0 else self._processes.why_not_started(member)
            self._report(f"{why}; next try in {self._schedule(member.name, now):.1f} s")
            return
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        if not self._restart:
            command = f"triplicate {member.kind} --config {self._processes.folder.config_of(member)}"
            self._report(f"{member.name} {how}; the others continue. Its log: {log}. Start it again: {command}")
            return
        if now - since >= STEADY_S and member.name in self._backoffs:
            self._backoffs[member.name].reset()
        self._report(
            f"{member.name} {how}; the others continue, and it is started again in {self._schedule(member.name, now):.1f} s. Its log: {log}"
        )

    def _schedule(self, name: str, now: float) -> float:
        """Schedule the next start of a process; returns the delay in seconds."""
        backoff = self._backoffs.setdefault(name, Backoff(FIRST_S, LONGEST_S, self._rng))
        delay = backoff.next_s()
        self._due[name] = now + delay
        return delay
