"""A cluster of five bookies on three hosts under faults for minutes, judged at its end.

Usage: python -m benchmarks.soak.run [--minutes 10] [--seed N] [--keep]

Logs with writers and tailers, and a database whose clients change registers, lists and accounts, work while bookies are killed, stopped,
delayed, cut off, filled, wiped and decommissioned, and leading nodes are killed and stopped, as `fault_plan.py` plans it from the seed.
Then everything runs again, all copies are restored, and `verdicts.py` and the judge of histories decide.

Prints figures and verdicts, and writes build/bench/soak.json. Exit code 1: a promise is broken; the evidence is printed, and the folder of
the cluster is kept.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.histories.clients import Client, Shared
from benchmarks.histories.cluster import RunFailed, wait_for
from benchmarks.histories.final_state import judge_database, prepare
from benchmarks.histories.stages import Blame, Kind, Result
from benchmarks.ledger.machine import commit
from benchmarks.ledger.processes import BUILD, ROOT, CaseFailed, Driver
from benchmarks.soak.fault_plan import PlannedFault, make_plan
from benchmarks.soak.fault_proxy import ProxyThread
from benchmarks.soak.injector import GAP_LIMIT_S, Injected, Injector
from benchmarks.soak.log_load import LOG_SETTINGS, history_of, record_of
from benchmarks.soak.restoring import (
    MB,
    RESTORE_LIMIT_S,
    ROUNDS_MAX,
    FinalState,
    Restored,
    Restorer,
    await_unmarked,
    check_ledgers,
    lacking_ledgers,
    marked_ledgers,
    raise_copies,
    reduced_segments,
)
from benchmarks.soak.soaked_cluster import HOSTS, OBSERVED, SMALL_DISK, SoakedCluster
from benchmarks.soak.verdicts import Verdict, judge_growth, judge_ledgers, judge_order, judge_records
from triplicate.client import connect
from triplicate.log import Logs

DATABASE = "books"
CLIENTS = 6
PAUSE_S = 0.15
"""Mean pause of a database client after each operation."""
APPENDS_PER_S = 30.0
"""Per log."""
RECORD_BYTES = 1500
TAILERS = 2
"""Per log."""
POLL_S = 0.25
CALM_S = 5.0
COMMAND_LIMIT_S = 300.0
JOIN_LIMIT_S = 60.0
TAIL_LIMIT_S = 90.0
"""Longest time in which the tailers reach the end after the writers have stopped."""
KINDS = ("bookie", "node", "writers", "tailers")


@dataclass
class Outcome:
    """The result of a run."""

    seconds: float
    injected: list[Injected]
    skipped: list[PlannedFault]
    """Faults that were not injected, because earlier ones had lasted longer than planned."""
    restored: Restored
    figures: dict[str, float]
    verdicts: list[Verdict]


@dataclass
class Gaps:
    """The times from an instant to the first acknowledgements of what was begun after it; None while there are none."""

    begun_s: float
    appends_s: float | None = None
    writes_s: float | None = None

    def observe(self, appended_s: float, wrote_s: float | None) -> None:
        """Args: appended_s: begin of the last acknowledged append. wrote_s: first acknowledgement of a write begun after the instant."""
        if self.appends_s is None and appended_s > self.begun_s:
            self.appends_s = time.monotonic() - self.begun_s
        if self.writes_s is None and wrote_s is not None:
            self.writes_s = wrote_s - self.begun_s

    @property
    def is_over(self) -> bool:
        """Whether both are known, or the limit is over."""
        return None not in (self.appends_s, self.writes_s) or time.monotonic() > self.begun_s + GAP_LIMIT_S


class Soak:
    """One run. Its methods are called in the order in which they stand here."""

    def __init__(self, cluster: SoakedCluster, proxies: ProxyThread, console: Console) -> None:
        self._cluster = cluster
        self._console = console
        self._restorer = Restorer(cluster)
        self._injector = Injector(cluster, proxies, self._restorer, self.elapse, DATABASE)
        self._folder = cluster.folder / "clients"
        self._folder.mkdir()
        self._shared = Shared(lambda: list(cluster.addresses.values()), DATABASE)
        self._clients = [Client(self._shared, number, PAUSE_S) for number in range(CLIENTS)]
        self._writers = cluster.driver("writers", "benchmarks.soak.log_load")
        self._tailers = cluster.driver("tailers", "benchmarks.soak.log_load")
        self._injected: list[Injected] = []
        self._began = time.monotonic()
        self._gaps = Gaps(self._began)

    def begin(self) -> None:
        """Start the load."""
        cluster, folder = self._cluster, str(self._folder)
        cluster.command("database", "create", DATABASE)
        wait_for(lambda: prepare(cluster, DATABASE), "the tables are made")
        _command(self._writers, "write", uri=cluster.uri, folder=folder, rate=APPENDS_PER_S, size=RECORD_BYTES)
        _command(self._tailers, "tail", uri=cluster.uri, folder=folder, tailers=TAILERS)
        for client in self._clients:
            client.start()
        self._began = time.monotonic()

    def elapse(self, until_s: float) -> None:
        """Take samples until an instant of the monotonic clock.

        Raises:
            RunFailed: a process has ended by itself.
        """
        while True:
            self._cluster.sample()
            appended_s = _command(self._writers, "figures")["last_acknowledged_s"]
            self._gaps.observe(appended_s, self._shared.first_write_after(self._gaps.begun_s))
            ended = self._cluster.ended_by_themselves()
            if ended:
                raise RunFailed("; ".join(ended))
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return
            time.sleep(min(POLL_S, left_s))

    def play(self, plan: Sequence[PlannedFault], seconds: float) -> list[PlannedFault]:
        """Inject the planned faults. Returns those for which no time was left."""
        for place, fault in enumerate(plan):
            if time.monotonic() - self._began + fault.lasts_s > seconds:
                return list(plan[place:])
            self.elapse(self._began + fault.at_s)
            self._console.print(f"{time.monotonic() - self._began:6.1f} s: {fault}", highlight=False)
            self._gaps = gaps = Gaps(time.monotonic())
            self._injector.inject(fault)
            while not gaps.is_over:
                self.elapse(time.monotonic() + POLL_S)
            self._injected.append(Injected(fault, gaps.begun_s - self._began, gaps.appends_s, gaps.writes_s))
        self.elapse(self._began + seconds)
        return []

    def end(self, skipped: list[PlannedFault]) -> Outcome:
        """End the load, restore all copies, and judge."""
        cluster = self._cluster
        while self._restorer.is_busy:
            self.elapse(time.monotonic() + POLL_S)
        self.elapse(time.monotonic() + CALM_S)
        seconds = time.monotonic() - self._began
        growth = judge_growth(cluster.samples(), KINDS, seconds)
        figures = self._end_load()
        report = judge_database(cluster, self._shared, Blame())
        for node in cluster.nodes.values():
            cluster.terminate(node)
        asyncio.run(raise_copies(cluster.uri))
        self._restore_all()
        final = asyncio.run(final_state(cluster.uri))
        histories = [history_of(self._folder, name, final.records[name]) for name in LOG_SETTINGS]
        figures["copied_by_daemons_mb"] = cluster.copied_bytes / MB
        figures["records"] = sum(len(history.acknowledged) for history in histories)
        strange = [f"strange answer: {text}" for text in dict.fromkeys(self._shared.strange)]
        verdicts = [
            *map(judge_records, histories),
            *map(judge_order, histories),
            Verdict(
                "databases linearizable, no row lost",
                f"{report.operations} operations on {report.keys} keys, {report.transfers} transfers, {report.statements} statements",
                (*report.violations, *report.undecided, *strange),
            ),
            judge_ledgers(final.ledgers, cluster.hosts(), final.marked, final.reduced),
            Verdict(
                "copies restored after every loss",
                f"{len(self._restorer.restored.seconds)} bookies",
                tuple(self._restorer.restored.failures),
            ),
            judge_gaps(self._injected),
            growth,
        ]
        return Outcome(seconds, self._injected, skipped, self._restorer.restored, figures, verdicts)

    def _end_load(self) -> dict[str, float]:
        self._shared.over.set()
        for client in self._clients:
            client.join(JOIN_LIMIT_S)
            if client.failure is not None or client.is_alive():
                raise RunFailed(f"{client.name} does not end, or ended by {client.failure!r}")
        written = _command(self._writers, "stop")
        ends = asyncio.run(ends_of(self._cluster.uri))
        deadline = time.monotonic() + TAIL_LIMIT_S
        while time.monotonic() < deadline:
            positions = _command(self._tailers, "figures")["positions"]
            if all(position >= ends[name.partition(".")[0]] for name, position in positions.items()):
                break
            time.sleep(POLL_S)
        tailed = _command(self._tailers, "stop")
        for driver in (self._writers, self._tailers):
            self._cluster.kill(driver)
        return {
            "appends_acknowledged": written["acknowledged"],
            "appends_failed": written["failed"],
            "appends_skipped": written["skipped"],
            "longest_s_between_appends": written["longest_s"],
            "tailer_reconnections": tailed["failed"],
            **{f"database_{result}": self._shared.stages.total(Kind, result) for result in Result},
        }

    def _restore_all(self) -> None:
        """Mark ledgers that lack copies, lost bookie or not, and wait for auto-recovery, until none does or the rounds are over."""
        for _ in range(ROUNDS_MAX):
            lacking = asyncio.run(lacking_ledgers(self._cluster.uri))
            marked = asyncio.run(await_unmarked(self._cluster.uri, RESTORE_LIMIT_S))
            if marked:
                self._console.print(f"after {RESTORE_LIMIT_S:.0f} s ledgers {marked} are still marked", highlight=False)
            if marked or not lacking:
                return
            self._cluster.sample()


async def ends_of(uri: str) -> dict[str, int]:
    """The end of each log."""
    async with connect(uri, name="soak") as client:
        logs = Logs(client)
        return {name: await logs.end_offset(name) for name in LOG_SETTINGS}


async def final_state(uri: str) -> FinalState:
    """Read all copies of all ledgers, and all records of the logs."""
    async with connect(uri, name="soak") as client:
        logs = Logs(client)
        records: dict[str, list[tuple[int, int]]] = {}
        for name in LOG_SETTINGS:
            end = await logs.end_offset(name)
            found = records[name] = []
            reader = await logs.reader(name)
            try:
                while reader.position < end:
                    entry = await reader.next_entry()
                    assert entry is not None, "without a time limit there is an entry or an error"
                    found += [(offset, record_of(value)) for offset, value in zip(entry.offsets, entry.values, strict=True)]
            finally:
                await reader.aclose()
        marked = await marked_ledgers(client)
        return FinalState(await check_ledgers(client), marked, await reduced_segments(logs), records)


def judge_restorations(restored: Restored) -> Verdict:
    """After every loss of a bookie the copies were restored in time."""
    return Verdict("copies restored after every loss", f"{len(restored.seconds)} bookies", tuple(restored.failures))


def judge_gaps(injected: Sequence[Injected]) -> Verdict:
    """Appends and writes go on after every fault."""
    evidence = [
        f"{one.fault}: no {what} was acknowledged within {GAP_LIMIT_S:.0f} s"
        for one in injected
        for what, gap_s in (("append", one.appends_gap_s), ("write of the database", one.writes_gap_s))
        if gap_s is None
    ]
    return Verdict("appends and writes go on after every fault", f"{len(injected)} faults", tuple(evidence))


def _command(driver: Driver, do: str, **arguments: Any) -> dict[str, Any]:
    return driver.ask(do, limit_s=COMMAND_LIMIT_S, **arguments)


def table_of(injected: Sequence[Injected]) -> Table:
    """Gaps by kind of fault."""
    table = Table(title="Seconds from a fault to the next acknowledged append of every log, and to the next write of the database")
    for heading in ("fault", "n", "appends, longest", "writes, longest"):
        table.add_column(heading, justify="left" if heading == "fault" else "right")
    for kind in dict.fromkeys(one.fault.kind for one in injected):
        of_kind = [one for one in injected if one.fault.kind == kind]
        longest = (max((gap for gap in gaps if gap is not None), default=0.0) for gaps in _gaps_of(of_kind))
        table.add_row(kind.value, str(len(of_kind)), *(f"{gap:.2f}" for gap in longest))
    return table


def _gaps_of(injected: Sequence[Injected]) -> tuple[list[float | None], list[float | None]]:
    return [one.appends_gap_s for one in injected], [one.writes_gap_s for one in injected]


def show(outcome: Outcome, console: Console) -> None:
    """Print figures and verdicts."""
    console.print(table_of(outcome.injected))
    restored = outcome.restored
    lines = [
        *(f"{name.replace('_', ' ')}: {value:g}" for name, value in outcome.figures.items()),
        f"restored by commands: {restored.size_bytes / MB:.1f} MB in {restored.entries} entries, {restored.passes} runs of them",
        f"seconds per lost bookie: {', '.join(f'{seconds:.1f}' for seconds in restored.seconds) or 'none'}",
        *(f"repeated: {refusal}" for refusal in restored.refusals),
        f"faults planned and not injected for lack of time: {len(outcome.skipped)}",
    ]
    for verdict in outcome.verdicts:
        lines.append(f"{verdict.word}: {verdict.promise} ({verdict.facts})")
        lines += [f"  {text}" for text in verdict.evidence]
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def facts_of(outcome: Outcome, seed: int) -> dict[str, Any]:
    """The contents of soak.json."""
    return {
        "v": 1,
        "seed": seed,
        "commit": commit(ROOT),
        "seconds": round(outcome.seconds, 1),
        "figures": outcome.figures,
        "faults": [
            {
                "fault": str(one.fault),
                "begun_s": round(one.begun_s, 1),
                "appends_gap_s": one.appends_gap_s,
                "writes_gap_s": one.writes_gap_s,
            }
            for one in outcome.injected
        ],
        "restored": dataclasses.asdict(outcome.restored),
        "verdicts": [
            {"promise": one.promise, "verdict": one.word, "facts": one.facts, "evidence": one.evidence} for one in outcome.verdicts
        ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="duration of the load")
    parser.add_argument("--seed", type=int, help="of the plan of faults; drawn and printed if it is left out")
    parser.add_argument("--keep", action="store_true", help="keep the cluster's folder")
    chosen = parser.parse_args()
    seed = chosen.seed if chosen.seed is not None else secrets.randbelow(1_000_000)
    seconds = 60 * chosen.minutes
    plan = make_plan(seed, seconds, range(1, len(HOSTS) + 1), small_disk=SMALL_DISK, observed=OBSERVED)
    console = Console(width=140)
    BUILD.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="soak-", dir=BUILD))
    console.print(f"seed {seed}, {chosen.minutes:g} minutes, {len(plan)} faults planned; folder {folder}", highlight=False, soft_wrap=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # The small disk is unmounted and every process ended.
    try:
        with ProxyThread() as proxies, SoakedCluster(folder / "cluster", proxies) as cluster:
            if not cluster.mounted:
                console.print("no small file system can be mounted: the disk fills by the setting of the bookie's guard", highlight=False)
            cluster.start()
            soak = Soak(cluster, proxies, console)
            soak.begin()
            outcome = soak.end(soak.play(plan, seconds))
    except (RunFailed, CaseFailed) as error:
        console.print(f"failed: {error}; seed {seed}; the cluster's folder: {folder}", highlight=False, soft_wrap=True)
        return 1
    show(outcome, console)
    is_kept = all(verdict.is_kept for verdict in outcome.verdicts)
    (BUILD / "soak.json").write_text(json.dumps(facts_of(outcome, seed), indent=2) + "\n")
    if chosen.keep or not is_kept:
        console.print(f"the cluster's folder: {folder}", highlight=False, soft_wrap=True)
    else:
        shutil.rmtree(folder)
    console.print(f"seed {seed}: " + ("every promise kept" if is_kept else "BROKEN"), highlight=False)
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
