"""One ratio per target from the runs: 1.0 is exactly on target, and more is better. Pure.

A figure of several rounds is their median. A target with a missing figure is None, and `reasons` has the cause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.ledger.ratios import Run, Runs, divided

BEFORE = "before"
NOW = "now"
POSTGRES = "postgres"
SQLITE = "sqlite"
SIDES = {BEFORE: "before", NOW: "now", POSTGRES: "PostgreSQL", SQLITE: "plain SQLite"}
"""Name of a side, and its heading."""
SLOW = "_slow_sync"
"""End of the names of cases in which each sync costs 2 ms more."""

READ_TIMES = 15.0
WRITE_TIMES = 4.0
READS_PER_CORE = 20_000.0
SIMPLE_READS = 10_000.0
READ_P50_MS = 0.5
INSERT_ALLOWANCE_MS = 0.5
LEDGER_SHARE = 0.5
PROCESSOR_SHARE = 0.25
POSTGRES_READS = 0.5
POSTGRES_COMMITS = 1.0
BULK_ROWS = 100_000.0
IDLE_MB = 30.0
CONNECTIONS = 2_000.0
LAG_S = 1.0
BESIDE_SCAN_TIMES = 2.0
"""A limit of this benchmark alone: without one, the case would have no verdict."""
BESIDE_SNAPSHOT_TIMES = 1.5
WORKING_MB = 300.0
RESTART_TIMES = 1.25
"""A restart beside a log ten times as long, against one beside the short log: as long, with what single starts differ by."""


@dataclass(frozen=True, slots=True)
class Place:
    """A figure of a case on a side."""

    side: str
    case: str
    figure: str

    def of(self, runs: Runs) -> float | None:
        return runs.of(self.side, self.case, self.figure)

    def missing(self, runs: Runs) -> str:
        """Why the figure is missing; empty if it is there."""
        if self.of(runs) is not None:
            return ""
        reasons = [run.reason for run in runs.runs if (run.side, run.case) == (self.side, self.case) and run.figures is None]
        return f"{self.case} of {self.side}: {reasons[0] if reasons else 'not run'}"


@dataclass(frozen=True, slots=True)
class SqlTarget:
    """One line of the table of targets."""

    key: str
    text: str
    unit: str
    measured: Place
    base: Place | None
    """The wanted value is a function of this figure; None where it is fixed."""
    wanted_from: Callable[[float], float]
    more_is_better: bool

    def reached(self, runs: Runs) -> float | None:
        return self.measured.of(runs)

    def wanted(self, runs: Runs) -> float | None:
        if self.base is None:
            return self.wanted_from(0.0)
        base = self.base.of(runs)
        return None if base is None else self.wanted_from(base)

    def ratio(self, runs: Runs) -> float | None:
        reached, wanted = self.reached(runs), self.wanted(runs)
        return divided(reached, wanted) if self.more_is_better else divided(wanted, reached)

    def reason(self, runs: Runs) -> str:
        """Why there is no ratio; empty if there is one."""
        if self.ratio(runs) is not None:
            return ""
        missing = [place.missing(runs) for place in (self.measured, self.base) if place is not None]
        return "; ".join(filter(None, missing)) or "a figure is zero"


def times(factor: float) -> Callable[[float], float]:
    return lambda base: factor * base


def plus(more: float) -> Callable[[float], float]:
    return lambda base: base + more


def _against(key: str, text: str, case: str, figure: str, base: Place, wanted_from: Callable[[float], float], *, more: bool) -> SqlTarget:
    unit = "ms" if figure.endswith("_ms") else "us" if figure.endswith("_us") else "s" if figure.endswith("_s") and not more else "/s"
    return SqlTarget(key, text, unit, Place(NOW, case, figure), base, wanted_from, more)


def _at_least(key: str, text: str, case: str, figure: str, value: float, unit: str = "/s") -> SqlTarget:
    return SqlTarget(key, text, unit, Place(NOW, case, figure), None, plus(value), more_is_better=True)


def _at_most(key: str, text: str, case: str, figure: str, value: float, unit: str) -> SqlTarget:
    return SqlTarget(key, text, unit, Place(NOW, case, figure), None, plus(value), more_is_better=False)


def _of_writes(end: str, words: str) -> tuple[SqlTarget, ...]:
    """The targets of writes, at this disk or with slower syncs."""
    one, many, tpcb, ledger = f"insert_1{end}", f"insert_64{end}", f"tpcb_16{end}", f"ledger{end}"
    ledger_p50, ledger_rows = Place(NOW, ledger, "p50_ms"), Place(NOW, ledger, "rows_per_s")
    before, before_tpcb, postgres = (Place(side, case, "per_s") for side, case in ((BEFORE, many), (BEFORE, tpcb), (POSTGRES, many)))
    return (
        _against(
            f"insert_1_p50{end}",
            f"insert p50, 1 client{words}: a ledger append's and 0.5 ms",
            one,
            "p50_ms",
            ledger_p50,
            plus(INSERT_ALLOWANCE_MS),
            more=False,
        ),
        _against(
            f"insert_64_vs_before{end}", f"inserts, 64 clients{words}: 4x before", many, "per_s", before, times(WRITE_TIMES), more=True
        ),
        _against(
            f"insert_64_vs_ledger{end}",
            f"inserts, 64 clients{words}: 0.5x rows that the bare ledger takes in the same groups",
            many,
            "per_s",
            ledger_rows,
            times(LEDGER_SHARE),
            more=True,
        ),
        _against(
            f"insert_64_vs_postgres{end}",
            f"inserts, 64 clients{words}: 1x PostgreSQL",
            many,
            "per_s",
            postgres,
            times(POSTGRES_COMMITS),
            more=True,
        ),
        _against(
            f"tpcb_16_vs_before{end}", f"TPC-B, 16 clients{words}: 4x before", tpcb, "per_s", before_tpcb, times(WRITE_TIMES), more=True
        ),
        _against(
            f"processor_per_insert{end}",
            f"processor time per insert, 64 clients{words}, all nodes and bookies: 1/4 of before",
            many,
            "cpu_us",
            Place(BEFORE, many, "cpu_us"),
            times(PROCESSOR_SHARE),
            more=False,
        ),
    )


def _of_reads(case: str, words: str) -> tuple[SqlTarget, ...]:
    before = Place(BEFORE, case, "per_s")
    return (
        _against(
            f"{case}_vs_before",
            f"point reads, prepared, 16 clients, {words}: 15x before",
            case,
            "per_s",
            before,
            times(READ_TIMES),
            more=True,
        ),
        _at_least(
            f"{case}_per_core", f"point reads, prepared, 16 clients, {words}, per core of the node", case, "per_core", READS_PER_CORE
        ),
    )


def _of_restarts() -> tuple[SqlTarget, ...]:
    """The long log beside the short one."""
    of_whom = {"_s": ("restart", "restart of a node after SIGKILL"), "_copy_s": ("new_copy", "new copy from a snapshot")}
    return tuple(
        _against(
            f"{key}_long_log",
            f"{words}, log ten times as long: {RESTART_TIMES}x with the short one",
            "restart",
            f"long{figure}",
            Place(NOW, "restart", f"short{figure}"),
            times(RESTART_TIMES),
            more=False,
        )
        for figure, (key, words) in of_whom.items()
    )


TARGETS: tuple[SqlTarget, ...] = (
    *_of_reads("read_16", "leader"),
    *_of_reads("read_16_follower", "follower"),
    _at_least("read_simple_16", "point reads, simple protocol, 16 clients", "read_simple_16", "per_s", SIMPLE_READS),
    _against(
        "read_16_vs_postgres",
        "point reads, prepared, 16 clients: 0.5x PostgreSQL",
        "read_16",
        "per_s",
        Place(POSTGRES, "read_16", "per_s"),
        times(POSTGRES_READS),
        more=True,
    ),
    _at_most("read_1_p50", "point read p50, 1 client", "read_1", "p50_ms", READ_P50_MS, "ms"),
    *_of_writes("", ""),
    *_of_writes(SLOW, ", syncs 2 ms slower"),
    _against(
        "take_over", "take-over: as before", "take_over", "take_over_s", Place(BEFORE, "take_over", "take_over_s"), times(1.0), more=False
    ),
    _at_most("follower_lag", "follower's lag under 64 inserting clients", "lag", "most_s", LAG_S, "s"),
    _at_least("copy_rows", "COPY, rows", "copy", "per_s", BULK_ROWS),
    _at_least("executemany_rows", "executemany in a transaction, rows", "executemany", "per_s", BULK_ROWS),
    _at_most("idle_200", "memory of 200 idle connections", "idle_200", "mb", IDLE_MB, "MB"),
    _at_least("connections_2000", "connections served of 2,000", "connections_2000", "served", CONNECTIONS, ""),
    _against(
        "read_beside_scan",
        "short reads' p99 beside a scan: 2x without",
        "scan",
        "beside_p99_ms",
        Place(NOW, "scan", "alone_p99_ms"),
        times(BESIDE_SCAN_TIMES),
        more=False,
    ),
    _at_most("memory_200", "memory of a leader with 200 working connections", "memory_200", "mb", WORKING_MB, "MB"),
    _against(
        "p99_beside_snapshot",
        "inserts' p99 beside snapshots, 16 clients: 1.5x without",
        "snapshot",
        "beside_p99_ms",
        Place(NOW, "snapshot", "alone_p99_ms"),
        times(BESIDE_SNAPSHOT_TIMES),
        more=False,
    ),
    *_of_restarts(),
)


def ratios(runs: Runs) -> dict[str, float | None]:
    """One number per target."""
    return {target.key: target.ratio(runs) for target in TARGETS}


def reasons(runs: Runs) -> dict[str, str]:
    """Why a target has no number, for those that have none."""
    return {target.key: reason for target in TARGETS if (reason := target.reason(runs))}


__all__ = ["BEFORE", "NOW", "POSTGRES", "SIDES", "SLOW", "SQLITE", "TARGETS", "Run", "Runs", "SqlTarget", "ratios", "reasons"]
