"""The history that checkers judge: what clients of a simulated cluster saw.

An event is a small frozen value with its time. An unknown outcome (a timeout, a broken connection) is no event: it says nothing. Each
workload has event types of its own. A checker reads the types it knows and knows nothing of the code that made them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

Kind = TypeVar("Kind")


@dataclass
class Verdict:
    """Findings of one checker."""

    checker: str
    decided: int = 0
    """Number of decisions. A checker that never decides anything proves nothing."""
    violations: list[str] = field(default_factory=list)
    undecided: int = 0
    """Number of times a bounded search gave up. The result is neither right nor wrong, and must be reported."""

    def merge(self, other: Verdict, subject: str) -> None:
        """Add the findings of the same checker in another history.

        Args:
            subject: of that history; named in its violations.
        """
        self.decided += other.decided
        self.undecided += other.undecided
        self.violations += [f"{subject}: {violation}" for violation in other.violations]


@dataclass
class History:
    """Events in the order in which they happened.

    `final_reader` names the reader that reads every entry of its ledger at the end. `ack_quorums` gives the ack quorum of each ledger whose
    copies were counted. `destroyed` names the bookies that lost synced data, each with the time from which its disks are intact again;
    infinite if never. `deaths` gives the times at which each node was killed: its programs missed the notifications of that moment. `lags`
    lists the periods in which metadata servers lagged: start, end, and greatest lag in seconds.
    """

    events: list[Any] = field(default_factory=list)
    final_reader: str | None = None
    ack_quorums: dict[int, int] = field(default_factory=dict)
    destroyed: dict[str, float] = field(default_factory=dict)
    deaths: dict[str, list[float]] = field(default_factory=dict)
    lags: list[tuple[float, float, float]] = field(default_factory=list)

    def add(self, event: object) -> None:
        self.events.append(event)

    def seen_since_s(self, time_s: float) -> float:
        """Return the time up to which a metadata read at `time_s` has certainly seen all changes."""
        return min([time_s, *(time_s - lag_s for from_s, until_s, lag_s in self.lags if from_s <= time_s <= until_s + lag_s)])

    def of(self, *kinds: type[Kind]) -> Iterator[Kind]:
        """Events of some types, in order."""
        return iter([event for event in self.events if isinstance(event, kinds)])


Checker = Callable[[History, Verdict], None]


def judge(history: History, checkers: Mapping[str, Checker]) -> list[Verdict]:
    """Run every checker on the history."""
    verdicts: list[Verdict] = []
    for name, check in checkers.items():
        verdict = Verdict(name)
        check(history, verdict)
        verdicts.append(verdict)
    return verdicts
