"""The cost of an append to a log and of a commit of a database, before and after a change: two states of the code alternate in one run.

Usage: python -m benchmarks.layers --before COMMIT [--rounds 3] [--seconds 8]

Each round starts a local cluster with the code of COMMIT, runs the load of `benchmarks/layers_load.py`, ends it, and repeats that with the
code of this checkout. Prints the medians of the rounds side by side and writes build/bench/layers.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "bench"
LIMIT_S = 600.0

Figures = dict[str, dict[str, float]]


def run_load(source: Path, seconds: float) -> Figures:
    """The figures of one state of the code, whose ``src`` is `source`."""
    folder = BUILD / "layers"
    shutil.rmtree(folder, ignore_errors=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRIPLICATE_")}
    command = [sys.executable, str(ROOT / "benchmarks" / "layers_load.py"), str(folder), str(seconds)]
    answer = subprocess.run(
        command, env={**environment, "PYTHONPATH": f"{source}:{ROOT}"}, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=True
    )
    shutil.rmtree(folder, ignore_errors=True)
    figures: Figures = json.loads(answer.stdout)
    return figures


def checked_out(commit: str) -> Path:
    """The sources of a commit, in a separate folder."""
    folder = BUILD / "before"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "src"


def medians(rounds: list[Figures]) -> Figures:
    return {load: {key: statistics.median(one[load][key] for one in rounds) for key in rounds[0][load]} for load in rounds[0]}


def table_of(before: Figures, after: Figures, title: str) -> Table:
    table = Table("load", "figure", "before", "after", "after / before", title=title)
    for load, figures in after.items():
        for key, value in figures.items():
            earlier = before[load][key]
            table.add_row(load, key, f"{earlier:.2f}", f"{value:.2f}", f"{value / earlier:.2f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each state (3)")
    parser.add_argument("--seconds", type=float, default=8.0, help="seconds of each load (8)")
    chosen = parser.parse_args()
    sources = {"before": checked_out(chosen.before), "after": ROOT / "src"}
    rounds: dict[str, list[Figures]] = {name: [] for name in sources}
    for number in range(chosen.rounds):
        for name, source in sources.items():
            rounds[name].append(run_load(source, chosen.seconds))
            print(f"round {number + 1}, {name}: done", flush=True)
    before, after = medians(rounds["before"]), medians(rounds["after"])
    Console().print(table_of(before, after, f"the code as it is, and {chosen.before}: medians of {chosen.rounds} rounds in turn"))
    (BUILD / "layers.json").write_text(json.dumps({"v": 1, "before": chosen.before, "rounds": rounds}, indent=2) + "\n")


if __name__ == "__main__":
    main()
