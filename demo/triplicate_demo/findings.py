"""Findings of the demonstration, and their summary."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from triplicate.cli import print_table, remarks


@dataclass
class Step:
    """Work of one step."""

    name: str
    records: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass
class Findings:
    """Filled step by step. `verified` holds the result of each check; the demonstration passes only if all are true."""

    records_ingested: int = 0
    rows: int = 0
    changes: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    missing: int = 0
    differing_copies: int = 0
    under_replicated: int = 0
    ensemble_changes: int = 0
    take_overs: int = 0
    seconds_without_leader: float = 0.0
    killed: list[str] = field(default_factory=list)
    restarted_at: dict[str, int] = field(default_factory=dict)
    peak_memory_bytes: int = 0
    stages: list[Step] = field(default_factory=list)
    verified: dict[str, bool] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[Step]:
        """Time a step, and report its start and its end."""
        remarks.print(f"{name} …")
        one = Step(name)
        started = time.monotonic()
        try:
            yield one
        finally:
            one.seconds = time.monotonic() - started
            self.stages.append(one)
        remarks.print(f"  {one.records:,} records, {one.seconds:.1f} s" if one.records else f"  {one.seconds:.1f} s")

    def check(self, what: str, holds: bool, complaint: str = "") -> None:
        """Note the result of one check."""
        self.verified[what] = holds
        if not holds:
            self.complaints.append(f"{what}: {complaint}" if complaint else what)
            remarks.print(f"  NOT SO: {self.complaints[-1]}")

    def summary(self) -> dict[str, Any]:
        """The summary with its fixed keys, as written to ``summary.json``."""
        return {
            "records_ingested": self.records_ingested,
            "rows": self.rows,
            "changes": sum(self.changes.values()),
            "changes_by_kind": self.changes,
            "acknowledged": self.acknowledged,
            "missing": self.missing,
            "differing_copies": self.differing_copies,
            "under_replicated": self.under_replicated,
            "ensemble_changes": self.ensemble_changes,
            "take_overs": self.take_overs,
            "seconds_without_leader": round(self.seconds_without_leader, 3),
            "killed": self.killed,
            "restarted_at": self.restarted_at,
            "peak_memory_bytes": self.peak_memory_bytes,
            "stages": [dataclasses.asdict(stage) for stage in self.stages],
            "verified": self.verified,
            "complaints": self.complaints,
        }


def show(findings: Findings, seconds: float) -> None:
    """Print the summary."""
    rows = []
    for stage in findings.stages:
        rate = f"{stage.records / stage.seconds:,.0f}" if stage.records and stage.seconds else ""
        rows.append((stage.name, f"{stage.records:,}", f"{stage.bytes:,}", f"{stage.seconds:.1f}", rate))
    headings = ("stage", "records", "bytes", "seconds", "records/s")
    print_table(headings, rows, right=headings[1:], title="stages")
    summary = findings.summary()
    figures = [(name.replace("_", " "), f"{value:,}") for name, value in summary.items() if isinstance(value, (int, float))]
    figures += [("killed", ", ".join(findings.killed))]
    figures += [(f"{name} started again at position", f"{position:,}") for name, position in findings.restarted_at.items()]
    print_table(("figure", "value"), figures, right=("value",), title="figures")
    checks = [(name, "yes" if held else "NO") for name, held in findings.verified.items()]
    print_table(("check", "holds"), checks, title=f"checks, after {seconds:.0f} s in all")
