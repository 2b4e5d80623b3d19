"""Restarts of a local cluster's processes: at once after the first end, at growing intervals after repeated ends; and the end of a process
that runs and has not answered for long."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from triplicate.cli.supervision.cluster_folder import ClusterFolder, ClusterMember
from triplicate.cli.supervision.cluster_view import Answers
from triplicate.cli.supervision.local_processes import RunningProcess
from triplicate.errors import EnvironmentFault
from triplicate.runtime import Backoff

FIRST_S = 0.5
LONGEST_S = 60.0
"""Bounds of the interval between two starts of one process."""
STEADY_S = 60.0
"""After serving for this time, a process starts again with the first interval."""
SILENT_S = 10.0
"""A process that has not answered for this time is reported."""
SILENCE_LIMIT_S = 60.0
"""A process that has not answered for this time is ended, by default."""
ROUNDS_MIN = 3
"""Probes that must have gone unanswered before a process is ended: a supervisor that stood still itself has not asked."""
DUMP_S = 1.0
"""Time that a process has for writing its stacks before its end."""


class Processes(Protocol):
    """The part of `LocalCluster` that a supervisor needs."""

    @property
    def folder(self) -> ClusterFolder: ...
    @property
    def running(self) -> Mapping[str, RunningProcess]: ...
    def launch(self, name: str) -> None: ...
    def send(self, name: str, number: signal.Signals) -> None: ...
    def newly_ready(self) -> list[RunningProcess]: ...
    def ended(self) -> list[RunningProcess]: ...
    def why_not_started(self, member: ClusterMember) -> str: ...


@dataclass
class Silence:
    """A process that does not answer."""

    process: RunningProcess
    since: float
    rounds: int = 0
    reported: bool = False
    dumped_at: float | None = None
    """When it was asked for its stacks; it is killed next."""


class Supervisor:
    """Call `poll` several times a second, and `observe` with the answers of each round of probes; they do not block.

    Args:
        restart: if False, ends and silences are only reported, with the command that restarts the process.
        silence_limit_s: a process that has not answered for this time, in seconds, is ended; None for never.
        report: called with each line for the operator.
        now: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        processes: Processes,
        *,
        restart: bool,
        silence_limit_s: float | None = SILENCE_LIMIT_S,
        report: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        self._processes = processes
        self._restart = restart
        self._silence_limit_s = silence_limit_s if restart else None
        self._report = report
        self._now = now
        self._rng = rng or random.Random()
        self._serving_since = {name: now() for name, one in processes.running.items() if one.facts}
        self._silences: dict[str, Silence] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._due: dict[str, float] = {}
        self.restarts = 0
        """Number of restarts of all processes."""

    def poll(self) -> None:
        """Report processes that ended or serve again, start those that are due, and end those that are silent."""
        now = self._now()
        for one in self._processes.newly_ready():
            self._serving_since[one.member.name] = now
            self._report(f"{one.member.name} serves again at {one.facts.get('address', '')} as process {one.process.pid}")
        for one in self._processes.ended():
            self._report_end(one, now)
        for name, silence in self._silences.items():
            if silence.dumped_at is not None and now - silence.dumped_at >= DUMP_S:
                self._processes.send(name, signal.SIGKILL)
        for name in [name for name, due in self._due.items() if due <= now]:
            del self._due[name]
            self._launch(name, now)

    def observe(self, answers: Answers) -> None:
        """Report processes that do not answer, or answer again. One that has been silent for too long writes the stacks of its threads into
        its log and is killed. Others serve its clients then, and it is started again."""
        now, running = self._now(), self._processes.running
        before, self._silences = self._silences, {}
        for name, answer in sorted(answers.items()):
            one, silence = running.get(name), before.get(name)
            if one is None:
                continue
            if silence is None or silence.process is not one:
                silence = Silence(one, now)
            if answer is None:
                self._silences[name] = silence
                self._judge(silence, now)
            elif silence.reported:
                self._report(f"{name} answers again")

    def _judge(self, silence: Silence, now: float) -> None:
        silence.rounds += 1
        name, limit_s, silent_s = silence.process.member.name, self._silence_limit_s, now - silence.since
        if silent_s >= SILENT_S and not silence.reported:
            silence.reported = True
            action = "is not restarted" if limit_s is None else f"is killed and started again if that lasts {limit_s:g} s"
            self._report(f"{name} runs and has not answered for {SILENT_S:.0f} s: it is stopped or overloaded, and {action}")
        if limit_s is not None and silent_s >= limit_s and silence.rounds >= ROUNDS_MIN and silence.dumped_at is None:
            silence.dumped_at = now
            log = self._processes.folder.log_of(silence.process.member)
            self._report(f"{name} has not answered for {silent_s:.0f} s and is killed; the stacks of its threads are at the end of {log}")
            self._processes.send(name, signal.SIGUSR2)

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
        self._silences.pop(member.name, None)
        since = self._serving_since.pop(member.name, None)
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        if since is None:
            # It never served: its last line has the reason, unless it was killed.
            how = f"{how} before it served (its log: {log})"
            how = f"{member.name} {how}" if code < 0 else self._processes.why_not_started(member)
        if not self._restart:
            command = f"triplicate {member.kind} --config {self._processes.folder.config_of(member)}"
            known = f"{member.name} {how}; the others continue. Its log: {log}" if since is not None else how
            self._report(f"{known}. Start it again: {command}")
            return
        if since is None:
            self._report(f"{how}; next try in {self._schedule(member.name, now):.1f} s")
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
