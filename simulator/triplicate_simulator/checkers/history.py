"""What clients of a simulated cluster saw: the history that checkers judge.

An event is a small frozen value with its time. An unknown outcome (a timeout, a broken connection) is no event: it says nothing. Each
play has event types of its own; a checker takes from the history those that it understands and knows nothing of the code that made them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

Kind = TypeVar("Kind")


@dataclass
class Verdict:
    """What one checker found."""

    checker: str
    decided: int = 0
    """How often there was something to decide. A checker that never decides anything proves nothing."""
    violations: list[str] = field(default_factory=list)
    undecided: int = 0
    """How often a bounded search gave up: neither right nor wrong, and never to be passed over in silence."""

    def merge(self, other: Verdict, about: str) -> None:
        """Take in what the same checker found in another history.

        Args:
            about: what that history is about; named in its violations.
        """
        self.decided += other.decided
        self.undecided += other.undecided
        self.violations += [f"{about}: {violation}" for violation in other.violations]


@dataclass
class History:
    """Events in the order in which they happened.

    `final_reader` names the reader that, when all was over, read every entry that its ledger has. `ack_quorums` gives, for each ledger
    whose copies were counted, how many copies it asks for. `destroyed` names the bookies that lost what they had synced, with the time from
    which on they held again what they were given; infinite, if never. `deaths` gives, for each node that was struck down, when: whoever ran
    on it was not told what it should have been told in that moment. `lags` says when servers of the metadata lagged: from when, until when,
    and by how many seconds at most.
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
        """A read of the metadata at this time has seen every change that was made by the time returned, perhaps no later one."""
        return min([time_s, *(time_s - lag_s for from_s, until_s, lag_s in self.lags if from_s <= time_s <= until_s + lag_s)])

    def of(self, *kinds: type[Kind]) -> Iterator[Kind]:
        """The events of some types, in order."""
        return iter([event for event in self.events if isinstance(event, kinds)])


Checker = Callable[[History, Verdict], None]


def judge(history: History, checkers: Mapping[str, Checker]) -> list[Verdict]:
    """Let every checker look at the history."""
    verdicts: list[Verdict] = []
    for name, check in checkers.items():
        verdict = Verdict(name)
        check(history, verdict)
        verdicts.append(verdict)
    return verdicts
