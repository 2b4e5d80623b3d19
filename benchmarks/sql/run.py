"""The whole comparison: ``make bench-sql``, and ``make bench-sql QUICK=1`` for the same from shorter loads.

    python -m benchmarks.sql.run [--quick] [--seconds N] [--before COMMIT] [--sides now,postgres] [--only read_16,insert_64] [--no-slow]

Sides take turns (A B A B), and only one side's processes run at a time. Writes ``build/bench/sql.json`` and ``build/bench/sql.md``. A
missed target is reported; a case that could not be measured has its reason there, and its target no ratio. The run fails where the stages
of a statement cannot be measured, because the code has moved.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import asyncpg
import psutil
import psycopg

from benchmarks.histories.cluster import RunFailed
from benchmarks.ledger import machine
from benchmarks.ledger.processes import BUILD, FAILURES, ROOT, CaseFailed
from benchmarks.ledger.ratios import Run, Runs
from benchmarks.ledger.table import number
from benchmarks.sql import plan, report, slow_sync, staged_run, targets
from benchmarks.sql.cases import SqlTurn
from benchmarks.sql.plan import FULL, QUICK, WARM_UP, Planned, SqlSizes
from benchmarks.sql.servers import SqlServer, checked_out, data_folder, make_server
from benchmarks.sql.targets import BEFORE, NOW, SIDES

COMMIT_BEFORE = "054e3b05"
"""The last commit before the database's speed was worked on."""
DATA = BUILD / "sql-data"
LOGS = BUILD / "sql" / "logs"
FAULTS = (*FAILURES, RunFailed, psycopg.Error, asyncpg.PostgresError, psutil.Error)
"""Recorded as the failure of a case; the run continues."""
OPEN_FILES = 8192


class SqlComparison:
    """Runs the turns and keeps their figures.

    Args:
        sources: the ``src`` folder of each state of the code.
        slower: variables that slow the syncs of a process; None where they cannot be slowed, for the reason given.
    """

    def __init__(self, sizes: SqlSizes, sources: Mapping[str, Path], slower: Mapping[str, str] | None, reason: str) -> None:
        self.sizes = sizes
        self.runs: list[Run] = []
        self.leader_changes: list[str] = []
        """Cases before which another node led than before the case earlier, on busy machines."""
        self._sources = sources
        self._slower = slower
        self._reason = reason
        self._begun = time.monotonic()

    def run_turn(self, planned: Planned) -> None:
        """Run one turn. Failures are recorded, and the run continues."""
        refusal = ""
        if time.monotonic() - self._begun > self.sizes.limit_s:
            refusal = f"the run's {self.sizes.limit_s / 60:.0f} minutes were over"
        elif planned.is_slow and self._slower is None:
            refusal = self._reason
        if refusal:
            self._fail(planned, refusal)
            return
        environment = (self._slower or {}) if planned.is_slow else {}
        with data_folder(DATA) as folder:
            server = make_server(planned.side, folder, environment, self._sources)
            try:
                with server:
                    self._measure(planned, server, folder)
            except FAULTS as failure:
                self._fail(planned, f"the server does not start: {failure}")
            finally:
                server.keep_logs(LOGS / f"{planned.side}-{planned.round}{planned.end}")

    def _measure(self, planned: Planned, server: SqlServer, folder: Path) -> None:
        turn = SqlTurn(server, folder, self.sizes.seconds)
        for name, case in planned.cases:
            began = time.monotonic()
            reason, found = "", None
            try:
                self._find_roles(server, f"{planned.side}, round {planned.round}, before {name}{planned.end}")
                found = case(turn)
            except FAULTS as failure:
                reason = " ".join((str(failure) or repr(failure)).split())
            run = Run(planned.side, name + planned.end, planned.round, found, reason, time.monotonic() - began)
            if name != WARM_UP or found is None:
                self._note(run)

    def _find_roles(self, server: SqlServer, when: str) -> None:
        before = server.leader_port
        server.find_roles()
        if server.leader_port != before:
            print(f"another node leads: {when}", flush=True)
            self.leader_changes.append(when)

    def _fail(self, planned: Planned, reason: str) -> None:
        for name, _ in planned.cases:
            self._note(Run(planned.side, name + planned.end, planned.round, None, reason))

    def _note(self, run: Run) -> None:
        text = f"failed: {run.reason}"
        if run.figures is not None:
            text = ", ".join(f"{key} {number(value)}" for key, value in run.figures.items())
        print(f"{time.monotonic() - self._begun:6.0f} s  {run.side:9} {run.case:24} {text}", flush=True)
        self.runs.append(run)


def write(runs: Runs, figures: staged_run.StageFigures, sizes: SqlSizes, about: Mapping[str, object]) -> None:
    """Write both files and print the table."""
    document = {
        "v": 1,
        "quick": sizes.quick,
        **about,
        "sizes": dataclasses.asdict(sizes),
        "ratios": targets.ratios(runs),
        "reasons": targets.reasons(runs),
        "targets": {
            one.key: {"text": one.text, "unit": one.unit, "wanted": one.wanted(runs), "reached": one.reached(runs)}
            for one in targets.TARGETS
        },
        "stages_us": figures.stages,
        "functions_us": {load: [one._asdict() for one in found] for load, found in figures.functions.items()},
        "runs": [dataclasses.asdict(run) for run in runs.runs],
    }
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / "sql.json").write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    text = report.document(runs, figures.stages, figures.functions, about)
    (BUILD / "sql.md").write_text(text, encoding="utf-8")
    print(text)
    print("written to build/bench/sql.json and build/bench/sql.md")


def prepare_slower_syncs() -> tuple[Mapping[str, str] | None, str]:
    """Variables that slow syncs, or the reason why there are none."""
    folder = BUILD / "sql"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return slow_sync.environment(slow_sync.build(folder)), ""
    except CaseFailed as failure:
        print(f"cases with slower syncs are left out: {failure}", file=sys.stderr)
        return None, str(failure)


def facts(commit_before: str, slower: Mapping[str, str] | None) -> dict[str, object]:
    """Facts about this run for both files."""
    found: dict[str, object] = {"commit": machine.commit(ROOT), "before": commit_before, "machine": machine.facts()}
    with data_folder(DATA) as folder:
        found["sync_4k_ms"] = round(slow_sync.measured_ms(folder, {}), 3)
        if slower is not None:
            found["slow_sync_4k_ms"] = round(slow_sync.measured_ms(folder, slower), 3)
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="shorter loads, one round")
    parser.add_argument("--seconds", type=float, help="seconds of each load")
    parser.add_argument("--rounds", type=int, help="rounds of each part")
    parser.add_argument("--minutes", type=float, help="limit of the whole run, for busy machines")
    parser.add_argument("--before", default=COMMIT_BEFORE, help=f"the commit to compare with ({COMMIT_BEFORE})")
    parser.add_argument("--sides", default="", help=f"only these: {', '.join(SIDES)}")
    parser.add_argument("--only", "--cases", default="", help="only these cases, by their names in sql.json without _slow_sync; no stages")
    parser.add_argument("--list", action="store_true", help="list the cases, and end")
    parser.add_argument("--no-slow", action="store_true", help="only at this disk")
    parser.add_argument("--samples", action="store_true", help="also the time by function in a quick run")
    parser.add_argument("--no-stages", action="store_true", help="without the stages of a statement")
    chosen = parser.parse_args()
    unknown = named(chosen.only) - plan.case_names()
    if unknown or named(chosen.sides) - SIDES.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown | (named(chosen.sides) - SIDES.keys())))}; see --list and --help")
    return chosen


def named(text: str) -> frozenset[str]:
    """The names in a list with commas."""
    return frozenset(filter(None, text.split(",")))


def sizes_of(chosen: argparse.Namespace) -> SqlSizes:
    """The sizes of a run that was asked for."""
    sizes = QUICK if chosen.quick else FULL
    if chosen.seconds:
        sizes = dataclasses.replace(sizes, seconds=chosen.seconds)
    if chosen.rounds:
        sizes = dataclasses.replace(sizes, rounds=chosen.rounds, slow_rounds=chosen.rounds)
    if chosen.minutes:
        sizes = dataclasses.replace(sizes, limit_s=60 * chosen.minutes)
    return sizes


def main() -> int:
    chosen = parse()
    if chosen.list:
        print("\n".join(f"{name:24} {words}" for name, words in report.CASES.items()))
        return 0
    sizes, sides, names = sizes_of(chosen), named(chosen.sides), named(chosen.only)
    # Ended as by Ctrl-C: all started processes are stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, hard) if hard != resource.RLIM_INFINITY else OPEN_FILES, hard))
    slower, reason = prepare_slower_syncs()
    about = {**facts(chosen.before, slower), "started": time.strftime("%Y-%m-%d %H:%M")}
    sources = {BEFORE: checked_out(chosen.before, BUILD / "sql" / "before"), NOW: ROOT / "src"}
    comparison = SqlComparison(sizes, sources, slower, reason)
    figures = staged_run.StageFigures({}, {})
    stages_failure = ""
    if not (chosen.no_stages or names) and (not sides or NOW in sides):
        try:
            figures = staged_run.measure(DATA, sources[NOW], sizes.seconds, samples=chosen.samples or not sizes.quick)
        except FAULTS as failure:
            stages_failure = f"stages of a statement: {failure}"
            print(stages_failure, file=sys.stderr)
    for planned in plan.turns(sizes):
        turn = planned.only(names)
        if turn is not None and (not sides or turn.side in sides) and not (turn.is_slow and chosen.no_slow):
            comparison.run_turn(turn)
    if stages_failure:
        about["not measured"] = stages_failure
    if comparison.leader_changes:
        about["leader changes"] = comparison.leader_changes
    write(Runs(comparison.runs), figures, sizes, about)
    return 1 if stages_failure else 0


if __name__ == "__main__":
    sys.exit(main())
