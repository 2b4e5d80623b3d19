"""The plan of one seed's run: the workload, its load, and which faults strike when. Drawn before the run begins; plain data."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Value = str | int | float | bool

PLAN_VERSION = 1
KIB = 1024
SECONDS_MAX = 1000.0
"""Upper bound of every time in a plan."""


@dataclass(frozen=True)
class Fault:
    """One fault of a plan. Times are simulated seconds since the workload began."""

    kind: str
    """A name in `faults.KINDS`."""
    at_s: float
    target: str = ""
    """The node that is struck; empty where the kind affects all nodes."""
    other: str = ""
    """The node at the other end of a link."""
    lasts_s: float = 0.0
    options: Mapping[str, Value] = field(default_factory=dict)
    """Further parameters of the kind."""

    def __str__(self) -> str:
        words = [self.kind, self.target, f"-> {self.other}" if self.other else "", f"at {self.at_s:.3f} s"]
        words.append(f"for {self.lasts_s:.3f} s" if self.lasts_s else "")
        words += [f"{name}={value}" for name, value in self.options.items()]
        return " ".join(word for word in words if word)


@dataclass(frozen=True)
class BookieSetup:
    """Settings of the bookies of a run, the same for all; see `BookieSettings` for the names. The defaults are the plainest."""

    journal_directories: int = 1
    ledger_directories: int = 1
    journal_file_bytes: int = 256 * KIB
    write_cache_bytes: int = 128 * KIB
    flush_interval_s: float = 1.0
    entry_log_bytes: int = 128 * KIB
    gc_interval_s: float = 4.0
    compaction_threshold: float = 0.2
    compaction_interval_s: float = 3600.0
    major_compaction_threshold: float = 0.8
    major_compaction_interval_s: float = 86_400.0
    trash_period_s: float = 0.0
    """Of clients and bookies."""
    reserve_bytes: int = 0
    disk_usage_threshold: float = 0.95
    """1: bookies do not check ahead, and disks fill up during writes."""
    recovery_adds_free_bytes: int = 64 * 1024 * KIB


PLAIN_SETUP = BookieSetup()
"""The plainest bookies: one directory of each kind, no trash, no reserve, no compaction within a run."""


@dataclass(frozen=True)
class Plan:
    """One run.

    `load` is the workload's own frozen dataclass of plain values: how much is written, and by which actors.
    """

    workload: str
    load: Any
    faults: tuple[Fault, ...] = ()
    duration_s: float = 45.0
    """Seconds that the workload runs before the faults stop. No fault begins later."""
    sync_high_s: float = 0.004
    """Longest sync of a disk. On slow disks much is in flight at any moment."""
    metadata_high_s: float = 0.004
    """Longest delay of a metadata operation, each way."""
    storage: BookieSetup = PLAIN_SETUP

    def to_json(self) -> str:
        """Return the plan as text that `scenario.plan_from_json` reads."""
        values = dataclasses.asdict(self)
        # The name of the field in files.
        values["play"] = values.pop("workload")
        return json.dumps({"v": PLAN_VERSION, **values}, indent=1, sort_keys=True)


def check_plan(plan: Plan) -> None:
    """Check that a plan read from a file has values of the right types and possible times.

    Raises:
        ValueError: names the wrong value.
    """
    for name in ("duration_s", "sync_high_s", "metadata_high_s"):
        _check_seconds(name, getattr(plan, name), above_zero=True)
    for number, fault in enumerate(plan.faults, 1):
        where = f"of fault {number}"
        for name in ("at_s", "lasts_s"):
            _check_seconds(f"{name} {where}", getattr(fault, name))
        if not isinstance(fault.target, str) or not isinstance(fault.other, str):
            raise ValueError(f"target and other {where} are names of nodes")
        if not isinstance(fault.options, Mapping) or not all(isinstance(value, Value) for value in fault.options.values()):
            raise ValueError(f"options {where} are names with plain values")
    for what, part in (("load", plan.load), ("storage", plan.storage)):
        for known in dataclasses.fields(part):
            if known.default is not dataclasses.MISSING:
                _check_type(f"{known.name} of the {what}", getattr(part, known.name), known.default)


def _check_seconds(name: str, value: object, *, above_zero: bool = False) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not 0 <= value <= SECONDS_MAX or (above_zero and value == 0):  # type: ignore[operator]
        least = "above 0" if above_zero else "from 0"
        raise ValueError(f"{name} is {value!r}; it is a number of seconds {least} to {SECONDS_MAX:g}")


def _check_type(name: str, value: object, default: object) -> None:
    """An int is valid for a float, but a bool is not valid for a number."""
    wanted = int | float if isinstance(default, float) else type(default)
    if not isinstance(value, wanted) or (isinstance(value, bool) and not isinstance(default, bool)):
        raise ValueError(f"{name} is {value!r}; it is something like {default!r}")
