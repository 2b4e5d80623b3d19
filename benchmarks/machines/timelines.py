"""The steps of a take-over, in seconds after the fault, from the traces of the nodes that remain.

A step is the first line of its trace that any remaining node writes after the fault. The nodes and this process share one clock, because
they share one kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

STEPS: Mapping[str, tuple[str, ...]] = {
    "suspected": ("replica.peer_gone", "replica.peer_silent"),
    "metadata lost": ("metadata.connection state=suspended",),
    "metadata back": ("metadata.connection state=connected",),
    "deposed": ("replica.leader_gone",),
    "elected": ("replica.role role=candidate",),
    "ledger made": ("client.ledger_created",),
    "fenced": ("client.ledger_recovered",),
    "taken over": ("log.taken_over",),
    "leads": ("replica.role role=leader",),
}
"""The traces that show each step: a name, perhaps with one of its fields."""
LATE_STEPS = ("ledger made", "fenced", "taken over", "leads")
"""Steps that count only after an election: logs are rolled at any time."""


@dataclass(frozen=True)
class TimeLine:
    """One take-over.

    Args:
        fault: what struck the leader's machine.
        with_metadata_leader: whether the leader of ZooKeeper's servers was on that machine.
        gap_s: until the first acknowledgement.
        steps: seconds after the fault; steps that did not occur are missing.
    """

    fault: str
    with_metadata_leader: bool
    gap_s: float
    steps: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        where = " with ZooKeeper's leader" if self.with_metadata_leader else ""
        return f"{self.fault}{where}: {self.gap_s:.2f} s ({', '.join(f'{name} {at_s:.2f}' for name, at_s in self.steps.items())})"


class Traces:
    """The lines that some logs get from now on."""

    def __init__(self, logs: Iterable[Path]) -> None:
        self._began = {log: log.stat().st_size for log in logs}

    def lines(self) -> list[str]:
        """The lines of all logs, in the order of their times."""
        found: list[str] = []
        for log, size in self._began.items():
            with log.open("rb") as file:
                file.seek(size)
                found += file.read().decode(errors="replace").splitlines()
        return sorted(found)


def steps_of(lines: Sequence[str], fault_at: float, until: float) -> dict[str, float]:
    """The time of each step, in seconds after the fault, in the order of the times.

    Args:
        lines: of the logs, in the order of their times.
        fault_at, until: wall time in seconds; lines of other times do not count.
    """
    found: dict[str, float] = {}
    for line in lines:
        at = _time_of(line)
        if at is None or not fault_at <= at <= until:
            continue
        for step, traces in STEPS.items():
            if (step in LATE_STEPS and "elected" not in found) or not any(_shows(line, trace) for trace in traces):
                continue
            if step == "metadata back" and "deposed" not in found:
                found[step] = at - fault_at  # The last one before the take-over.
            found.setdefault(step, at - fault_at)
    if "metadata lost" not in found:
        found.pop("metadata back", None)
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _time_of(line: str) -> float | None:
    stamp, _, _ = line.partition("Z ")
    try:
        return datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _shows(line: str, trace: str) -> bool:
    name, *wanted = trace.split()
    return f" triplicate: {name} " in line and all(f" {one}" in line for one in wanted)
