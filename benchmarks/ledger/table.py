"""The table that a run prints: every case with all sides beside each other, then the targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.ledger.ratios import TARGETS, Runs, Target

SIDES = {
    "floor": "bare loop",
    "ours": "ours",
    "crossed": "Apache's client, our bookies",
    "apache_shipped": "Apache as shipped",
    "apache_advised": "Apache, v2 and DbLedgerStorage",
}

LATENCIES = ("p50_ms", "p99_ms", "p999_ms", "max_ms")
SPREAD = ("p99_least_ms", "p99_most_ms")
"""Label of the windows of which p99 is the median."""
APPEND = ("per_s", "cpu_s_per_million", "p50_ms", "p99_ms")
CASES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("append_100", "append 100 B, window 1,000", APPEND),
    ("append_1k", "append 1 KiB, window 1,000", APPEND),
    ("append_16k", "append 16 KiB, window 1,000", APPEND),
    ("rate_1000", "append at 1,000/s", LATENCIES),
    ("rate_5000", "append at 5,000/s", LATENCIES),
    ("window_1", "append, window 1", ("p50_ms", "p99_ms")),
    ("one_ledger", "one ledger", ("per_s",)),
    ("many_ledgers", "many ledgers at once", ("per_s", "p99_ms")),
    ("ledgers_few", "few ledgers on disk", ("p99_ms", *SPREAD, "memory_mib", "index_mib", "start_s")),
    ("ledgers_many", "many ledgers on disk", ("p99_ms", *SPREAD, "memory_mib", "index_mib", "start_s")),
    ("catch_up_cold", "catch-up read, cold files", ("per_s", "mib_per_s", "cpu_s_per_million")),
    ("catch_up_cached", "catch-up read, from cache", ("per_s", "mib_per_s", "cpu_s_per_million")),
    ("batch_cold", "batch read, cold files", ("per_s", "mib_per_s", "cpu_s_per_million")),
    ("tail", "append to tailer at 1,000/s", ("append_p50_ms", *LATENCIES)),
    ("recovery", "recovery", ("recovery_s",)),
    ("start_full_journal", "start with a full journal", ("journal_mib", "start_s")),
    ("without_readers", "append at a rate, no readers", ("p50_ms", "p99_ms", *SPREAD)),
    ("under_readers", "append at a rate under catch-up readers", ("p50_ms", "p99_ms", *SPREAD, "read_per_s")),
    ("stalled", "a reader and a disk stalled", ("per_s", "memory_mib")),
)
"""Case, its name in the table, and its figures."""

FIGURES = {
    "per_s": "entries/s",
    "cpu_s_per_million": "CPU s per million",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "p99_least_ms": "p99 ms, best window",
    "p99_most_ms": "p99 ms, worst window",
    "p999_ms": "p99.9 ms",
    "max_ms": "max ms",
    "append_p50_ms": "append p50 ms",
    "mib_per_s": "MiB/s",
    "memory_mib": "memory MiB",
    "index_mib": "index MiB",
    "start_s": "start s",
    "recovery_s": "s",
    "journal_mib": "journal MiB",
    "read_per_s": "read entries/s",
}


def number(value: float | None) -> str:
    """Two decimals, two significant digits below 0.01, whole numbers from 100; a dash for a missing figure."""
    if value is None:
        return "-"
    if abs(value) >= 100 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.2g}" if abs(value) < 0.01 else f"{value:.2f}"


def case_rows(runs: Runs, sides: Sequence[str]) -> list[list[str]]:
    """Name of the case (in its first row), name of the figure, then one cell per side; a failed case is marked."""
    rows = []
    for case, name, figures in CASES:
        for index, figure in enumerate(figures):
            cells = [_cell(runs, side, case, figure, first=index == 0) for side in sides]
            if index == 0 or any(cells):
                rows.append([name if index == 0 else "", FIGURES[figure], *cells])
    return rows


def _cell(runs: Runs, side: str, case: str, figure: str, *, first: bool) -> str:
    tried = [run for run in runs.runs if (run.side, run.case) == (side, case)]
    if not tried:
        return ""
    value = runs.of(side, case, figure)
    if value is None and all(run.figures is None for run in tried):
        return "failed" if first else ""
    return number(value)


def target_rows(runs: Runs) -> list[list[str]]:
    """Target, wanted value, measured value, ratio, and verdict."""
    return [_target_row(target, runs) for target in TARGETS]


def _target_row(target: Target, runs: Runs) -> list[str]:
    ratio = target.ratio(runs)
    if ratio is None:
        verdict = "not measured"
    elif ratio >= 1:
        verdict = "met"
    else:
        verdict = f"missed: {(1 - ratio) * 100:.0f} % short"
    sign = ">=" if target.more_is_better else "<="
    wanted = f"{sign} {number(target.wanted(runs))} {target.unit}"
    return [target.text, wanted, f"{number(target.measured(runs))} {target.unit}", number(ratio), verdict]


def show(runs: Runs, durability: Mapping[str, str], *, quick: bool, width: int = 180) -> None:
    """Print the table, the targets, and the causes of failures."""
    sides = [side for side in SIDES if any(run.side == side for run in runs.runs)]
    title = "Quick run: smaller sizes, figures of passing interest" if quick else "The ledger layer beside Apache BookKeeper's"
    table = Table(title=title, title_justify="left")
    for heading in ("case", "figure", *(SIDES[side] for side in sides)):
        table.add_column(heading, justify="left" if heading in ("case", "figure") else "right")
    table.add_row("durability", "", *(durability[side] for side in sides), end_section=True)
    rows = case_rows(runs, sides)
    for index, row in enumerate(rows):
        table.add_row(*row, end_section=index + 1 == len(rows) or bool(rows[index + 1][0]))
    console = Console(width=width)
    console.print(table)
    targets = Table(title="Targets (ratio 1.00 is exactly on target)", title_justify="left")
    for heading in ("target", "wanted", "measured", "ratio", ""):
        targets.add_column(heading, justify="right" if heading == "ratio" else "left")
    for row in target_rows(runs):
        targets.add_row(*row)
    console.print(targets)
    for run in runs.runs:
        if run.figures is None:
            print(f"not measured: {run.case} of {run.side}, round {run.round}: {run.reason}")
