"""The table of a run, in Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.ledger.ratios import Runs, divided
from benchmarks.ledger.table import number
from benchmarks.sql import levels
from benchmarks.sql.levels import LevelOfReads
from benchmarks.sql.sampling import FunctionShare
from benchmarks.sql.targets import BEFORE, NOW, POSTGRES, SIDES, SLOW, SQLITE, TARGETS, SqlTarget

FIGURES = {
    "per_s": "/s",
    "per_core": "/s per core of the node",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "read_p99_ms": "p99 ms of its reads",
    "insert_p99_ms": "p99 ms of its inserts",
    "cpu_us": "us of processor, nodes and bookies",
    "node_cpu_us": "us of processor, the node",
    "rows_per_entry": "rows per entry",
    "entry_bytes": "bytes per entry",
    "rows_per_s": "rows/s",
    "take_over_s": "s",
    "alone_p99_ms": "p99 ms alone",
    "beside_p99_ms": "p99 ms beside",
    "alone_per_s": "/s alone",
    "beside_per_s": "/s beside",
    "p50_s": "p50 s",
    "most_s": "most s",
    "seconds": "s in all",
    "snapshot_s": "s for a snapshot",
    "short_s": "s, short log",
    "long_s": "s, long log",
    "short_cpu_s": "s of processor until then, short log",
    "long_cpu_s": "s of processor until then, long log",
    "short_copy_s": "s for a new copy, short log",
    "long_copy_s": "s for a new copy, long log",
    "short_copy_cpu_s": "s of processor for a new copy, short log",
    "long_copy_cpu_s": "s of processor for a new copy, long log",
    "short_log_mb": "MB of the short log",
    "long_log_mb": "MB of the long log",
    "mb": "MB",
    "more_mb": "MB that they add",
    "served": "served",
    "failed": "failed",
    "failed_rows": "rows of a failed load",
}
"""Figures in the order of the table; others are only in the JSON file."""


def _of_level(level: LevelOfReads, clients: int) -> str:
    return f"point reads, {level.name}, {'follower' if level.follower else 'leader'}, {clients} clients"


CASES = {
    "read_16": "point reads, prepared, 16 clients",
    "read_1": "point reads, prepared, 1 client",
    "read_16_follower": "point reads, prepared, 16 clients, follower",
    "read_1_follower": "point reads, prepared, 1 client, follower",
    "read_simple_16": "point reads, simple protocol, 16 clients",
    "insert_1": "one-row inserts, 1 client",
    "insert_16": "one-row inserts, 16 clients",
    "insert_64": "one-row inserts, 64 clients",
    **{name: _of_level(level, clients) for name, level, clients in levels.named()},
    "read_256": "point reads, prepared, 256 clients",
    "insert_256": "one-row inserts, 256 clients",
    "ten_1": "transactions of ten statements, 1 client",
    "ten_16": "transactions of ten statements, 16 clients",
    "mixed_64": "90 % point reads and 10 % one-row inserts, 64 clients",
    "ledger": "ledger appends, entries of the inserts' sizes",
    "tpcb_16": "TPC-B, 16 clients",
    "pgbench_tables": "`pgbench -i -I dtgvpf`",
    "copy": "COPY, rows",
    "insert_rows": "INSERT of 1,000 rows of parameters, 20 in a transaction, rows",
    "insert_text": "INSERT of 1,000 rows of constants, 20 in a transaction, rows",
    "executemany": "executemany in a transaction, rows",
    "scan": "short reads, 4 clients, and a scan",
    "snapshot": "one-row inserts, 16 clients, and snapshots",
    "handover": "read of an acknowledged row on a follower, with its position as token",
    "lag": "follower's lag, 64 inserting clients",
    "idle_200": "200 idle connections",
    "memory_200": "the leader's memory with 200 working connections",
    "connections_2000": "2,000 connections",
    "take_over": "take-over after kill -9",
    "restart": "restart after kill -9, and a new copy",
}
"""Cases in the order of the table."""


def case_rows(runs: Runs) -> Iterator[list[str]]:
    """Case, figure, before, now, now over before, PostgreSQL, now over PostgreSQL, plain SQLite."""
    for end in ("", SLOW):
        for case, words in CASES.items():
            name = words + (", syncs 2 ms slower" if end else "")
            for figure, unit in FIGURES.items():
                values = {side: runs.of(side, case + end, figure) for side in SIDES}
                if any(value is not None for value in values.values()):
                    yield [name, unit, *(number(value) for value in _beside(values))]


def _beside(values: Mapping[str, float | None]) -> Iterator[float | None]:
    """A figure of all sides, with the quotients of now over before and over PostgreSQL."""
    for side, value in values.items():
        yield value
        if side == NOW:
            yield divided(value, values[BEFORE])
        if side == POSTGRES:
            yield divided(values[NOW], value)


def target_row(target: SqlTarget, runs: Runs) -> list[str]:
    """Target, before, now, now over before, wanted, ratio, verdict."""
    reached, wanted, ratio = target.reached(runs), target.wanted(runs), target.ratio(runs)
    before = runs.of(BEFORE, target.measured.case, target.measured.figure)
    return [
        target.text,
        number(before),
        number(reached),
        number(divided(reached, before)),
        f"{_sign(target)} {number(wanted)}{_unit(target)}",
        number(ratio),
        _verdict(target, runs),
    ]


def _sign(target: SqlTarget) -> str:
    return ">=" if target.more_is_better else "<="


def _unit(target: SqlTarget) -> str:
    return f" {target.unit}" if target.unit else ""


def _verdict(target: SqlTarget, runs: Runs) -> str:
    ratio = target.ratio(runs)
    if ratio is None:
        return f"not run: {target.reason(runs)}"
    return "met" if ratio >= 1 else f"missed by {(1 - ratio) * 100:.0f} %"


def missed_lines(runs: Runs) -> Iterator[str]:
    """Each missed target, with what was reached, what was wanted, and by how much it is missed."""
    for target in TARGETS:
        ratio = target.ratio(runs)
        if ratio is not None and ratio < 1:
            reached, wanted = (f"{number(value)}{_unit(target)}" for value in (target.reached(runs), target.wanted(runs)))
            yield f"- {target.text}: {reached} instead of {_sign(target)} {wanted}, {_verdict(target, runs)}"


def stage_rows(stages: Mapping[str, Mapping[str, float]]) -> Iterator[list[str]]:
    """Stage, then the microseconds per statement of each load."""
    names = list(dict.fromkeys(name for one in stages.values() for name in one))
    for name in names:
        yield [name, *(number(one.get(name)) for one in stages.values())]


def markdown(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def function_rows(functions: Sequence[FunctionShare]) -> Iterator[list[str]]:
    """Function, microseconds per statement of its own, and with the functions that it calls."""
    for one in functions:
        yield [f"`{one.name}`", number(one.own_us), number(one.all_us)]


def document(
    runs: Runs, stages: Mapping[str, Mapping[str, float]], functions: Mapping[str, Sequence[FunctionShare]], about: Mapping[str, object]
) -> str:
    """The whole report. Targets whose case is no part of the run are left out."""
    parts = ["# The SQL layer: before, now, PostgreSQL, plain SQLite\n"]
    parts += ["\n".join(f"- {name}: {value}" for name, value in about.items()) + "\n"]
    heading: tuple[str, ...] = ("target", "before", "now", "now / before", "wanted", "ratio", "")
    planned = {run.case for run in runs.runs}
    shown = [target for target in TARGETS if target.measured.case in planned]
    parts += ["## Targets\n", markdown(heading, [target_row(target, runs) for target in shown])]
    missed = list(missed_lines(runs))
    parts += ["## Missed\n", "\n".join(missed) + "\n"] if missed else []
    heading = ("case", "figure", "before", "now", "now / before", SIDES[POSTGRES], f"now / {SIDES[POSTGRES]}", SIDES[SQLITE])
    parts += ["## Cases\n", markdown(heading, list(case_rows(runs)))]
    if stages:
        parts += ["## Microseconds per statement by stage\n", markdown(("stage", *stages), list(stage_rows(stages)))]
    for load, shares in functions.items():
        heading_words = ("function", "us of its own", "us with what it calls")
        parts += [f"## Microseconds per statement by function: {load}\n", markdown(heading_words, list(function_rows(shares)))]
    failures = [f"- {run.case} of {run.side}, round {run.round}: {run.reason}" for run in runs.runs if run.figures is None]
    if failures:
        parts += ["## Not measured\n", "\n".join(failures) + "\n"]
    return "\n".join(parts)
