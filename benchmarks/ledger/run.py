"""The whole comparison: ``make bench``, and ``make bench QUICK=1`` for the same from smaller sizes.

    python -m benchmarks.ledger.run [--quick] [--sides ours,floor] [--only append,storage] [--folder DIR]

Sides take turns (A B A B …), and only one side's processes run at a time; ZooKeeper runs throughout. Prints the table and writes
``build/bench/ledger.json``. A missed target is reported; a target that could not be measured makes the run fail.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ledger import cases, in_turn, machine, ours, stalled, table, theirs
from benchmarks.ledger.cases import FULL, QUICK, Case, Sizes, Turn
from benchmarks.ledger.processes import BUILD, FAILURES, ROOT, Side, free_port
from benchmarks.ledger.ratios import TARGETS, Run, Runs, ratios

SIDES: dict[str, type[Side]] = {side.name: side for side in (ours.Floor, ours.Ours, theirs.Shipped, theirs.Advised, theirs.Crossed)}
KEPT = "3 copies, 2 on disk before the answer (fdatasync), CRC32C"
DURABILITY = {
    "floor": "3 copies, 2 on disk before the answer (fdatasync), CRC32C; no protocol, no storage",
    "ours": KEPT,
    "crossed": KEPT,
    "apache_shipped": KEPT,
    "apache_advised": KEPT,
}
Named = tuple[tuple[str, Case], ...]

LATENCY: Named = (("window_1", cases.window_1), ("rate_1000", cases.rate(1000)), ("rate_5000", cases.rate(5000)))
APPENDS: Named = (("append_100", cases.append(100)), ("append_1k", cases.append(1024)), ("append_16k", cases.append(16 * 1024)))
BATCHES = ("batch_cold", cases.catch_up(cold=True, batch=True))
STORAGE: Named = (
    ("fill", cases.fill),
    ("catch_up_cold", cases.catch_up(cold=True, batch=False)),
    ("catch_up_cached", cases.catch_up(cold=False, batch=False)),
    BATCHES,
    ("without_readers", in_turn.without_readers),
    ("under_readers", in_turn.under_readers),
    ("recovery", cases.recovery),
)
AT_ONCE: Named = (("one_ledger", cases.one_ledger), ("many_ledgers", cases.many_ledgers))
ON_DISK: Named = (("ledgers_few", in_turn.ledgers_few), ("ledgers_many", in_turn.ledgers_many))
PREPARING = ("warm_up", "fill")
"""Cases without figures, which always run. Memory during them counts."""


@dataclass(frozen=True)
class Planned:
    """A turn of a side, with a fresh cluster."""

    group: str
    side: str
    round: int
    cases: Named


def plan(sizes: Sizes) -> Iterator[Planned]:
    warm: Named = (("warm_up", cases.warm_up),)
    for number in range(1, sizes.rounds + 1):
        yield Planned("append", "floor", number, (*APPENDS, ("window_1", cases.window_1)))
        for side in ("ours", "apache_shipped", "apache_advised"):
            yield Planned("append", side, number, (*warm, *LATENCY, ("tail", cases.tail), *APPENDS))
        yield Planned("append", "crossed", number, (*warm, *LATENCY, *APPENDS))
    yield from storage_turns(1)
    for side in ("ours", "apache_advised"):
        yield Planned("at_once", side, 1, (*warm, *AT_ONCE))
    for side in ("ours", "apache_advised"):
        # The few ledgers come first: without other ledgers on disk, and without memory from a load at full speed.
        yield Planned("ledgers", side, 1, ON_DISK)
    yield Planned("journal", "ours", 1, (("start_full_journal", cases.start_full_journal),))
    yield Planned("stalled", "ours", 1, (("stalled", stalled.stalled),))
    # Repetitions come last, so that a run over its time limit lacks only repetitions.
    for number in range(2, sizes.storage_rounds + 1):
        yield from storage_turns(number)


def storage_turns(number: int) -> Iterator[Planned]:
    for side in ("ours", "apache_shipped", "apache_advised"):
        # Version 3 has no batch reads.
        storage = tuple(case for case in STORAGE if case is not BATCHES or side != "apache_shipped")
        yield Planned("storage", side, number, (("warm_up", cases.warm_up), *storage))


def planned_runs(sizes: Sizes) -> frozenset[tuple[str, str, int]]:
    """Side, case and round of every run of the whole comparison, also of those not chosen."""
    return frozenset((turn.side, case, turn.round) for turn in plan(sizes) for case, _ in turn.cases)


class Comparison:
    def __init__(self, sizes: Sizes, folder: Path) -> None:
        self.sizes = sizes
        self.folder = folder
        self.runs: list[Run] = []
        self.fdatasync_p50_ms = machine.fdatasync_p50_ms(folder)
        self._deadline = time.monotonic() + sizes.limit_s
        self._begun = time.monotonic()
        self._turns = 0

    def take(self, planned: Planned, zookeeper: str) -> None:
        """Run one turn. Failures are recorded, and the run continues."""
        self._turns += 1
        name = f"{self._turns:02}-{planned.group}-{planned.side.replace('_', '-')}"
        side = SIDES[planned.side](zookeeper, self.folder / "side", name)
        prepare(side, planned.group, self.folder)
        try:
            try:
                side.start()
            except FAILURES as failure:
                for case, _ in planned.cases:
                    self._note(Run(planned.side, case, planned.round, None, f"the side does not start: {failure}"))
                return
            kept: dict[str, object] = {}
            for case, function in planned.cases:
                self._note(self._measured(side, planned, case, function, kept))
        finally:
            side.stop()

    def _measured(self, side: Side, planned: Planned, case: str, function: Case, kept: dict[str, object]) -> Run:
        started = time.monotonic()
        if started > self._deadline:
            return Run(planned.side, case, planned.round, None, f"the run's {self.sizes.limit_s / 60:.0f} minutes were over")
        reason, figures = "", None
        with machine.MemorySampler(side.pids) as sampler:
            try:
                figures = function(Turn(side, self.sizes, sampler, kept))
            except FAILURES as failure:
                reason = str(failure)
        return Run(planned.side, case, planned.round, figures, reason, time.monotonic() - started, sampler.peaks())

    def _note(self, run: Run) -> None:
        text = f"failed: {run.reason}"
        if run.figures is not None:
            text = ", ".join(f"{key} {table.number(value)}" for key, value in run.figures.items())
        print(f"{time.monotonic() - self._begun:6.0f} s  {run.side:15} {run.case:18} {text}", flush=True)
        self.runs.append(run)

    def result(self) -> Runs:
        return Runs(self.runs, self.fdatasync_p50_ms, ours.bounds_mib(), planned_runs(self.sizes))


def prepare(side: Side, group: str, folder: Path) -> None:
    """Configure a side for a group with special needs, before it starts."""
    if group == "journal" and isinstance(side, ours.Ours):
        side.bookies_wanted = 1
        # No flush occurs before the bookie is killed: half of the cache holds every entry.
        side.more.update(write_cache_bytes=4 << 30, flush_interval_s=3600)
    if group == "stalled" and isinstance(side, ours.Ours):
        side.stalling[stalled.STALLED_DISK] = folder / "stalled"
        side.metrics_ports.update({name: free_port() for name in (stalled.UNREAD, stalled.STALLED_DISK)})


def document(runs: Runs, sizes: Sizes, about: dict[str, object]) -> dict[str, object]:
    found = ratios(runs)
    return {
        "v": 1,
        "quick": sizes.quick,
        **about,
        "sizes": dataclasses.asdict(sizes),
        "durability": DURABILITY,
        "settings": {
            "ours": ours.settings(),
            "apache_shipped": theirs.settings(theirs.Shipped),
            "apache_advised": theirs.settings(theirs.Advised),
        },
        "fdatasync_4k_p50_ms": runs.fdatasync_p50_ms,
        "bookie_memory_bounds_mib": runs.bounds_mib,
        "runs": [dataclasses.asdict(run) for run in runs.runs],
        "targets": {
            target.key: {"text": target.text, "unit": target.unit, "wanted": target.wanted(runs), "measured": target.measured(runs)}
            for target in TARGETS
        },
        "ratios": found,
    }


def not_measured(runs: Runs) -> list[str]:
    """The targets with a missing figure. Any of them fails the run; other failures are only printed."""
    return [key for key, ratio in ratios(runs).items() if ratio is None]


def compare(planned: Sequence[Planned], sizes: Sizes, folder: Path) -> Runs:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.rmtree(BUILD / "logs", ignore_errors=True)
    zookeeper = theirs.ZooKeeper(folder / "zookeeper")
    try:
        address = zookeeper.wait()
        comparison = Comparison(sizes, folder)
        for turn in planned:
            comparison.take(turn, address)
    finally:
        zookeeper.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return comparison.result()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--sides", default="", help="only these, by name; the result then fails as incomplete")
    parser.add_argument("--only", default="", help="only these groups of cases: append, storage, at_once, ledgers, journal, stalled")
    parser.add_argument("--cases", default="", help="only these cases, beside those that prepare")
    parser.add_argument("--folder", type=Path, default=BUILD / "ledger-data", help="where the data goes; emptied first")
    parser.add_argument("--minutes", type=float, help="limit of the whole run, for busy machines")
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else FULL
    if arguments.minutes:
        sizes = dataclasses.replace(sizes, limit_s=60 * arguments.minutes)
    sides, groups, names = (set(filter(None, text.split(","))) for text in (arguments.sides, arguments.only, arguments.cases))
    chosen = [
        dataclasses.replace(one, cases=tuple(case for case in one.cases if not names or case[0] in names or case[0] in PREPARING))
        for one in plan(sizes)
        if (not sides or one.side in sides) and (not groups or one.group in groups)
    ]
    # Ended as by Ctrl-C: all started processes are stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    theirs.install()
    about: dict[str, object] = {"machine": machine.facts(), "commit": machine.commit(ROOT), "started": time.time()}
    runs = compare(chosen, sizes, arguments.folder)
    table.show(runs, DURABILITY, quick=sizes.quick)
    target = BUILD / "ledger.json"
    target.write_text(json.dumps(document(runs, sizes, about), indent=2, sort_keys=True) + "\n", encoding="utf-8")
    print(f"written to {target.relative_to(ROOT)}")
    missing = not_measured(runs)
    if missing:
        print(f"not measured: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
