"""Restarts of a local cluster's processes: after an end at once, after repeated ends at growing intervals."""

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
"""A process that has served for so long begins with the first interval again."""


class Processes(Protocol):
    """What a supervisor needs of a `LocalCluster`."""

    @property
    def folder(self) -> ClusterFolder: ...
    @property
    def running(self) -> Mapping[str, RunningProcess]: ...
    def launch(self, name: str) -> None: ...
    def newly_ready(self) -> list[RunningProcess]: ...
    def ended(self) -> list[RunningProcess]: ...
    def why_not_started(self, member: ClusterMember) -> str: ...


class Supervisor:
    """Call `look` several times a second; it never waits.

    Args:
        restart: False: ends are told, with the command that starts the process again, and nothing is started.
        tell: gets each line for the operator.
        now: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        processes: Processes,
        *,
        restart: bool,
        tell: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        self._processes = processes
        self._restart = restart
        self._tell = tell
        self._now = now
        self._rng = rng or random.Random()
        self._serving_since = dict.fromkeys(processes.running, now())
        self._backoffs: dict[str, Backoff] = {}
        self._due: dict[str, float] = {}
        self.restarts = 0
        """Starts since the beginning, of all processes."""

    def look(self) -> None:
        """Report what ended and what serves again, and start what is due."""
        now = self._now()
        for one in self._processes.newly_ready():
            self._serving_since[one.member.name] = now
            self._tell(f"{one.member.name} serves again at {one.facts.get('address', '')} as process {one.process.pid}")
        for one in self._processes.ended():
            self._report_end(one, now)
        for name in [name for name, due in self._due.items() if due <= now]:
            del self._due[name]
            self._launch(name, now)

    def _launch(self, name: str, now: float) -> None:
        try:
            self._processes.launch(name)
        except (EnvironmentFault, OSError) as error:
            self._tell(f"{error}; next try in {self._schedule(name, now):.1f} s")
        else:
            self.restarts += 1

    def _report_end(self, one: RunningProcess, now: float) -> None:
        member = one.member
        code = one.process.returncode
        log = self._processes.folder.log_of(member)
        since = self._serving_since.pop(member.name, None)
        if since is None:
            # It never served: its last line says why, unless it was killed.
            early = f"{member.name} was killed by signal {-code} before it served (its log: {log})"
            why = early if code < 0 else self._processes.why_not_started(member)
            self._tell(f"{why}; next try in {self._schedule(member.name, now):.1f} s")
            return
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        if not self._restart:
            command = f"triplicate {member.kind} --config {self._processes.folder.config_of(member)}"
            self._tell(f"{member.name} {how}; the others go on. Its log: {log}. Start it again: {command}")
            return
        if now - since >= STEADY_S and member.name in self._backoffs:
            self._backoffs[member.name].reset()
        self._tell(
            f"{member.name} {how}; the others go on, and it is started again in {self._schedule(member.name, now):.1f} s. Its log: {log}"
        )

    def _schedule(self, name: str, now: float) -> float:
        """Note when to start a process next; returns in how many seconds."""
        backoff = self._backoffs.setdefault(name, Backoff(FIRST_S, LONGEST_S, self._rng))
        delay = backoff.next_s()
        self._due[name] = now + delay
        return delay
