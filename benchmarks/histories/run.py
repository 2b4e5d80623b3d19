"""Histories of registers, lists and transfers while leaders and bookies are killed and stopped, checked at the end.

Usage: python -m benchmarks.histories.run [--operations 20000] [--rounds 2] [--metadata sqlite]

A cluster of four bookies and three database nodes; 24 clients. Each round injects every fault once. The run ends after the requested
numbers of operations and rounds. Prints a table of the gaps and the verdicts, and writes build/bench/histories.json.
Exit code 1: a history is wrong or undecided, or a process did not recover.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isinf
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.histories.clients import ACCOUNTS, SCHEMA, Client, Shared, items_of
from benchmarks.histories.cluster import DatabaseNodes, LocalCluster, RunFailed, wait_for
from benchmarks.histories.judge import Noted, Report, judge_copies, judge_keys, judge_lists, judge_transfers
from benchmarks.histories.levels import LevelClients, LevelHistory
from benchmarks.histories.nemesis import FAULTS, Fault, InjectedFault, Nemesis
from benchmarks.histories.windows import Window, environment, faults_in_windows, read_windows
from benchmarks.ledger.processes import BUILD
from triplicate_simulator.checkers.linearizability import RegisterOperation

DATABASE = "books"
CLIENTS = 24
SECONDS_MAX = 1800.0
JOIN_LIMIT_S = 60.0
FAILED_S = 1.0
"""A window that was never committed counts as open for this time."""
TABLES = ("registers", "lists", "accounts", "transfers")


@dataclass
class Outcome:
    """Result of a run."""

    injected: list[InjectedFault]
    report: Report
    seconds: float
    answered: int
    unknown: int
    refused: int
    strange: list[str] = field(default_factory=list)
    levels: LevelHistory = field(default_factory=LevelHistory)
    """Reads at the levels of a session."""
    windows: list[Window] = field(default_factory=list)
    """Windows of several groups, where the nodes note them."""


def play(
    cluster: LocalCluster,
    faults: Sequence[Fault],
    operations: int,
    rounds: int,
    clients: int = CLIENTS,
    windows: Path | None = None,
) -> Outcome:
    """Run clients and faults until there are enough of both, and check the history.

    Args:
        windows: where the nodes note their windows of groups, if they do.

    Raises:
        RunFailed: the cluster did not recover from a fault, or a client ended by itself.
    """
    shared = Shared(list(cluster.ports.values()), DATABASE)
    cluster.command("database", "create", DATABASE)
    wait_for(lambda: prepare(cluster), "the tables are made")
    threads = [Client(shared, number) for number in range(clients)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    nemesis = Nemesis(cluster, shared, DATABASE, windows)
    levels = LevelClients(list(cluster.ports.values()), DATABASE)
    try:
        done = 0
        with levels:
            while done < rounds or shared.answered + shared.unknown < operations:
                nemesis.round(faults)
                done += 1
                if time.monotonic() > began + SECONDS_MAX:
                    raise RunFailed(f"{shared.answered} operations in {SECONDS_MAX:.0f} s")
    finally:
        seconds = time.monotonic() - began
        shared.over.set()
        for thread in threads:
            thread.join(JOIN_LIMIT_S)
    for thread in threads:
        if thread.failure is not None or thread.is_alive():
            raise RunFailed(f"{thread.name} ended by {thread.failure!r}" if thread.failure else f"{thread.name} does not end")
    if levels.failure is not None:
        raise RunFailed(f"the clients of the levels ended by {levels.failure!r}")
    report = judge(cluster, shared)
    report.violations += levels.history.violations
    return Outcome(nemesis.injected, report, seconds, shared.answered, shared.unknown, shared.refused, shared.strange, levels.history)


def prepare(cluster: DatabaseNodes) -> bool:
    """Make the tables and accounts once a node leads; return whether they are made."""
    leader = cluster.leader(DATABASE)
    if leader is None:
        return False
    with cluster.session(leader, DATABASE) as session:
        session.execute("begin")
        for statement in SCHEMA:
            session.execute(statement)
        for name, balance in ACCOUNTS.items():
            session.execute("insert into accounts values(%s, %s)", (name, balance))
        session.execute("commit")
    return True


def judge(cluster: DatabaseNodes, shared: Shared) -> Report:
    """Read every copy at the end, and check the history."""
    leader = wait_for(lambda: cluster.leader(DATABASE), "a node leads")
    rows = wait_for(lambda: _rows(cluster, leader), "the leader is read")
    copies = {leader: rows}
    for name in cluster.ports:
        if name != leader:
            # A follower may lag behind the last writes: it catches up, or has diverged.
            try:
                copies[name] = wait_for(lambda name=name: _rows(cluster, name) == rows and rows, f"{name} has what {leader} has")  # type: ignore[misc]
            except RunFailed:
                copies[name] = _rows(cluster, name)
    report = Report()
    judge_copies(copies, report)
    seen, now = shared.seen, time.monotonic()
    lists = {name: items_of(items) for name, items in rows["lists"]}
    final = {**dict(rows["registers"]), **lists}
    for key, operations in seen.operations.items():
        operations.append(RegisterOperation("read", (), now, now, final.get(key, () if key.startswith("list") else None), "judge"))
    judge_keys(seen.operations, {"register": None, "list": ()}, report)
    judge_lists(seen.operations, lists, report)
    noted = [Noted(*row[1:]) for row in sorted(rows["transfers"])]
    judge_transfers(seen, noted, ACCOUNTS, dict(rows["accounts"]), report)
    return report


def _rows(cluster: DatabaseNodes, name: str) -> dict[str, list[tuple[Any, ...]]]:
    with cluster.session(name, DATABASE) as session:
        session.execute("begin read only")
        found = {table: sorted(session.execute(f"select * from {table}").fetchall()) for table in TABLES}
        session.execute("commit")
    return found


def table_of(injected: Sequence[InjectedFault]) -> Table:
    """Gaps by fault."""
    table = Table(title="Seconds from a fault to the next acknowledged write")
    for heading in ("fault", "n", "median", "longest", "leaders changed"):
        table.add_column(heading, justify="left" if heading == "fault" else "right")
    for fault in dict.fromkeys(injection.fault for injection in injected):
        gaps = [injection.gap_s for injection in injected if injection.fault == fault]
        changed = sum(injection.leader != injection.successor for injection in injected if injection.fault == fault)
        table.add_row(fault.name, str(len(gaps)), f"{statistics.median(gaps):.2f}", f"{max(gaps):.2f}", str(changed))
    return table


def show(outcome: Outcome, console: Console) -> None:
    """Print gaps and verdicts."""
    report = outcome.report
    console.print(table_of(outcome.injected))
    lines = [
        f"{outcome.answered} operations answered, {outcome.unknown} of unknown outcome, {outcome.refused} refused, {outcome.seconds:.0f} s",
        f"registers and lists: {report.operations} operations on {report.keys} keys; undecided {len(report.undecided)}",
        _about_windows(outcome),
        _about_levels(outcome.levels),
        f"transfers: {report.transfers}, statements of all accounts: {report.statements}",
        *(f"strange answer: {text}" for text in dict.fromkeys(outcome.strange)),
        *(f"UNDECIDED {text}" for text in report.undecided),
        *(f"VIOLATED {text}" for text in report.violations),
        "sound" if report.is_sound and not outcome.strange else "NOT SOUND",
    ]
    for line in lines:
        console.print(line, highlight=False)


def _about_levels(history: LevelHistory) -> str:
    answered = ", ".join(f"{level} {count}" for level, count in sorted(history.reads.items()))
    refused = ", ".join(f"{sqlstate} {count}" for sqlstate, count in sorted(history.refused.items()))
    return f"reads at levels: {answered or 'none'}; refused: {refused or 'none'}; marks: {len(history.marks)}"


def _about_windows(outcome: Outcome) -> str:
    windows = outcome.windows
    struck = faults_in_windows(windows, [injection.began_s for injection in outcome.injected], FAILED_S)
    groups = max((window.groups for window in windows), default=0)
    lost = sum(isinf(window.ended_s) for window in windows)
    return (
        f"windows of several groups: {len(windows)}, at most {groups} groups, {lost} never committed; faults while one was open: {struck}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--operations", type=int, default=20_000, help="operations at least")
    parser.add_argument("--rounds", type=int, default=2, help="times that each fault is injected, at least")
    parser.add_argument("--metadata", choices=("sqlite", "zk"), default="sqlite", help="where the cluster keeps its metadata")
    parser.add_argument("--faults", default="", help="only faults whose names begin so")
    parser.add_argument("--keep", action="store_true", help="keep the cluster's folder")
    chosen = parser.parse_args()
    faults = [fault for fault in FAULTS if fault.name.startswith(chosen.faults)]
    if not faults:
        parser.error(f"no fault begins with {chosen.faults!r}; there are {', '.join(fault.name for fault in FAULTS)}")
    console = Console(width=120)
    BUILD.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="histories-", dir=BUILD))
    try:
        with LocalCluster(folder / "cluster", store=chosen.metadata, environment=environment(folder)) as cluster:
            outcome = play(cluster, faults, chosen.operations, chosen.rounds, windows=folder)
        outcome.windows = read_windows(folder)
    except RunFailed as error:
        console.print(f"failed: {error}; the cluster's folder: {folder}", highlight=False)
        return 1
    show(outcome, console)
    gaps = [
        {"fault": s.fault.name, "gap_s": round(s.gap_s, 3), "leader": s.leader, "successor": s.successor, "injected_at": s.injected_at}
        for s in outcome.injected
    ]
    facts = {"v": 1, "metadata": chosen.metadata, "answered": outcome.answered, "unknown": outcome.unknown, "refused": outcome.refused}
    facts |= {
        "seconds": round(outcome.seconds),
        "gaps": gaps,
        "windows": len(outcome.windows),
        "level_reads": dict(outcome.levels.reads),
        "violations": outcome.report.violations,
        "undecided": outcome.report.undecided,
    }
    (BUILD / "histories.json").write_text(json.dumps(facts, indent=2) + "\n")
    if chosen.keep or not outcome.report.is_sound or outcome.strange:
        console.print(f"the cluster's folder: {folder}", highlight=False)
    else:
        shutil.rmtree(folder)
    return 0 if outcome.report.is_sound and not outcome.strange else 1


if __name__ == "__main__":
    sys.exit(main())
