"""The stages of a run, one per fault, and the outcomes and the verdict of each kind of operation in each stage.

A stage begins some seconds before its fault, and ends when the next one begins. The keys that clients use belong to one stage, so that a
wrong key is blamed on one fault. Pure.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """The kinds of operations that are counted and judged apart."""

    STATEMENTS = "SQL statements"
    """On registers and lists."""
    TRANSACTIONS = "SQL transactions"
    """Transfers, and reads of all accounts."""
    SQL_LEVELS = "SQL reads at levels"
    KEY_VALUE = "key-value"
    """Single commands, batches and pipelines."""
    KEY_VALUE_LEVELS = "key-value reads at levels"


class Result(StrEnum):
    ANSWERED = "answered"
    UNKNOWN = "unknown"
    REFUSED = "refused"
    """It did not happen."""


NO_FAULT = "none"


@dataclass
class Stages:
    """The stages so far, and the number of operations in each. Used by all threads of a run."""

    faults: list[str] = field(default_factory=lambda: [NO_FAULT])
    """The fault of each stage."""
    counts: Counter[tuple[int, Kind, Result]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def now(self) -> int:
        """The number of the present stage."""
        return len(self.faults) - 1

    def begin(self, fault: str) -> None:
        """Begin the stage of a fault."""
        with self._lock:
            self.faults.append(fault)

    def count(self, kind: Kind, result: Result, stage: int | None = None) -> None:
        """Count an operation, of the present stage by default."""
        with self._lock:
            self.counts[self.now if stage is None else stage, kind, result] += 1

    def total(self, kinds: Iterable[Kind], *results: Result) -> int:
        """The number of operations of some kinds with some results."""
        with self._lock:
            return sum(number for (_, kind, result), number in self.counts.items() if kind in kinds and result in results)


@dataclass
class Blame:
    """The stages whose history is wrong, and those whose history is not decided, by kind."""

    wrong: set[tuple[int, Kind]] = field(default_factory=set)
    undecided: set[tuple[int, Kind]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Cell:
    """The operations of one kind in all stages of one fault."""

    answered: int
    unknown: int
    refused: int
    verdict: str
    """``ok``, ``WRONG``, ``UNDECIDED``; empty where nothing was answered."""


def cells_of(stages: Stages, blame: Blame) -> Mapping[str, Mapping[Kind, Cell]]:
    """The outcomes and verdicts by fault and kind, in the order in which the faults came first."""
    found: dict[str, dict[Kind, Cell]] = {}
    for fault in dict.fromkeys(stages.faults):
        numbers = [number for number, name in enumerate(stages.faults) if name == fault]
        found[fault] = {kind: _cell(stages, blame, numbers, kind) for kind in Kind}
    return found


def _cell(stages: Stages, blame: Blame, numbers: Iterable[int], kind: Kind) -> Cell:
    places = [(number, kind) for number in numbers]
    answered, unknown, refused = (sum(stages.counts[*place, result] for place in places) for result in Result)
    verdict = "ok" if answered else ""
    if not blame.undecided.isdisjoint(places):
        verdict = "UNDECIDED"
    if not blame.wrong.isdisjoint(places):
        verdict = "WRONG"
    return Cell(answered, unknown, refused, verdict)
