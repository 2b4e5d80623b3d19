"""The result of a run: its tables for a person, and its facts for `histories.json`."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isinf
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.histories.judge import Report
from benchmarks.histories.levels import LevelHistory
from benchmarks.histories.nemesis import InjectedFault
from benchmarks.histories.stages import NO_FAULT, Blame, Cell, Kind, Result, Stages, cells_of
from benchmarks.histories.windows import Window, faults_in_windows

FAILED_S = 1.0
"""A window that was never committed counts as open for this time."""


@dataclass
class Outcome:
    """Result of a run."""

    injected: list[InjectedFault]
    report: Report
    """On the database, and on the reads at levels."""
    store_report: Report
    seconds: float
    stages: Stages
    blame: Blame
    strange: list[str] = field(default_factory=list)
    """Unexpected answers."""
    levels: Mapping[Kind, LevelHistory] = field(default_factory=dict)
    windows: list[Window] = field(default_factory=list)
    """Windows of several groups, where the nodes note them."""

    @property
    def is_sound(self) -> bool:
        return self.report.is_sound and self.store_report.is_sound and not self.strange

    @property
    def cells(self) -> Mapping[str, Mapping[Kind, Cell]]:
        """Outcomes and verdicts by fault and kind. The time before the first fault is left out if nothing was done in it."""
        found = cells_of(self.stages, self.blame)
        return {fault: cells for fault, cells in found.items() if fault != NO_FAULT or any(cell.answered for cell in cells.values())}


def show(outcomes: Mapping[str, Outcome], console: Console) -> None:
    """Print gaps, verdicts and violations."""
    console.print(gaps_of([injection for outcome in outcomes.values() for injection in outcome.injected]))
    console.print(verdicts_of(outcomes))
    for name, outcome in outcomes.items():
        for line in _lines(name, outcome):
            console.print(line, highlight=False)


def gaps_of(injected: Sequence[InjectedFault]) -> Table:
    """Gaps by fault."""
    table = Table(title="Seconds from a fault to the next acknowledged write")
    for heading in ("fault", "n", "median", "longest", "leaders changed"):
        table.add_column(heading, justify="left" if heading == "fault" else "right")
    for fault in dict.fromkeys(injection.fault for injection in injected):
        gaps = [injection.gap_s for injection in injected if injection.fault == fault]
        changed = sum(injection.leader != injection.successor for injection in injected if injection.fault == fault)
        table.add_row(fault.name, str(len(gaps)), f"{statistics.median(gaps):.2f}", f"{max(gaps):.2f}", str(changed))
    return table


def verdicts_of(outcomes: Mapping[str, Outcome]) -> Table:
    """Operations, those of unknown outcome, and verdicts, by fault and kind."""
    table = Table("fault", title="Operations answered, of unknown outcome, and the verdict")
    for kind in Kind:
        table.add_column(kind, justify="right")
    for outcome in outcomes.values():
        for fault, cells in outcome.cells.items():
            table.add_row(fault, *(f"{cell.answered:,}, {cell.unknown} {cell.verdict}" for cell in cells.values()))
    table.add_section()
    table.add_row("all", *(f"{_sum(outcomes, kind, Result.ANSWERED):,}, {_sum(outcomes, kind, Result.UNKNOWN)}" for kind in Kind))
    return table


def _sum(outcomes: Mapping[str, Outcome], kind: Kind, result: Result) -> int:
    return sum(outcome.stages.total((kind,), result) for outcome in outcomes.values())


def _lines(name: str, outcome: Outcome) -> list[str]:
    stages, report, store = outcome.stages, outcome.report, outcome.store_report
    answered, unknown, refused = (stages.total(Kind, result) for result in Result)
    return [
        f"{name}: {answered} operations answered, {unknown} of unknown outcome, {refused} refused, {outcome.seconds:.0f} s",
        f"  registers and lists: {report.operations} operations on {report.keys} keys; undecided {len(report.undecided)}",
        f"  transfers: {report.transfers}, statements of all accounts: {report.statements}",
        f"  groups of keys: {store.operations} operations on {store.keys} groups; undecided {len(store.undecided)}",
        *(f"  {_about_levels(history)}" for history in outcome.levels.values()),
        *([f"  {_about_windows(outcome)}"] if outcome.windows else []),
        *(f"  strange answer: {text}" for text in dict.fromkeys(outcome.strange)),
        *(f"  UNDECIDED {text}" for text in (*report.undecided, *store.undecided)),
        *(f"  VIOLATED {text}" for text in (*report.violations, *store.violations)),
        f"  {'sound' if outcome.is_sound else 'NOT SOUND'}",
    ]


def _about_levels(history: LevelHistory) -> str:
    answered = ", ".join(f"{level} {count}" for level, count in sorted(history.reads.items()))
    refused = ", ".join(f"{code} {count}" for code, count in sorted(history.refused.items()))
    return f"{history.kind}: {answered or 'none'}; with an age {history.ages}; refused: {refused or 'none'}; marks: {len(history.marks)}"


def _about_windows(outcome: Outcome) -> str:
    windows = outcome.windows
    struck = faults_in_windows(windows, [injection.began_s for injection in outcome.injected], FAILED_S)
    groups = max((window.groups for window in windows), default=0)
    lost = sum(isinf(window.ended_s) for window in windows)
    return (
        f"windows of several groups: {len(windows)}, at most {groups} groups, {lost} never committed; faults while one was open: {struck}"
    )


def facts_of(outcomes: Mapping[str, Outcome], metadata: str) -> dict[str, Any]:
    """The contents of histories.json."""
    return {"v": 2, "metadata": metadata, "clusters": {name: _facts(outcome) for name, outcome in outcomes.items()}}


def _facts(outcome: Outcome) -> dict[str, Any]:
    gaps = [
        {
            "fault": one.fault.name,
            "gap_s": round(one.gap_s, 3),
            "of": one.target,
            "leader": one.leader,
            "successor": one.successor,
            "injected_at": one.injected_at,
        }
        for one in outcome.injected
    ]
    return {
        "seconds": round(outcome.seconds),
        "gaps": gaps,
        "verdicts": [
            {"fault": fault, "kind": kind, **asdict(cell)} for fault, cells in outcome.cells.items() for kind, cell in cells.items()
        ],
        "windows": len(outcome.windows),
        "level_reads": {kind: dict(history.reads) for kind, history in outcome.levels.items()},
        "ages": {kind: history.ages for kind, history in outcome.levels.items()},
        "violations": [*outcome.report.violations, *outcome.store_report.violations],
        "undecided": [*outcome.report.undecided, *outcome.store_report.undecided],
        "strange": outcome.strange,
    }
