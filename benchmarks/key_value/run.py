"""The whole comparison: ``make bench-key-value``.

    python -m benchmarks.key_value.run [--seconds 5] [--rounds 3] [--sides triplicate,etcd] [--cases put_64,get_64]

Three nodes of ours over three bookies, and three members of etcd, take turns on this machine; only one side runs at a time. The load is
one program (``driver``), which speaks Redis' protocol to our leader and etcd's own to its members, so that its own cost is alike. Both
sides sync before they acknowledge. Reads are linearizable on both. Prints a table and writes ``build/bench/key_value.json``. The ratios
are the result; the rates depend on machine and moment.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.histories.cluster import RunFailed
from benchmarks.key_value.driver_build import build_driver
from benchmarks.key_value.sides import ETCD, OURS, EtcdSide, OurSide, Side
from benchmarks.ledger.processes import BUILD, FAILURES, CaseFailed

KEYS = 10_000
LIMIT_S = 120.0
FAULTS = (*FAILURES, RunFailed, psutil.Error)
SIDES: dict[str, type[Side]] = {OURS: OurSide, ETCD: EtcdSide}


class Case(NamedTuple):
    """One load: the operation, and how many are under way."""

    operation: str
    clients: int
    target: float | None = None
    """The least ratio of our rate to etcd's that is wanted."""


CASES = {
    "put_1": Case("put", 1),
    "put_64": Case("put", 64, 1.0),
    "put_256": Case("put", 256),
    "get_1": Case("get", 1),
    "get_64": Case("get", 64, 1.0),
    "get_256": Case("get", 256),
    "mixed_64": Case("mixed", 64),
}


def measure(program: Path, side: Side, case: Case, seconds: float) -> dict[str, Any]:
    """Run one load. Adds the processor time of the side's processes for an operation, and their memory.

    Raises:
        CaseFailed: the load failed, or an operation did.
    """
    before_s = side.processor_s()
    options = {"target": side.target, "addresses": ",".join(side.addresses), "operation": case.operation, "clients": str(case.clients)}
    options |= {"seconds": str(seconds), "keys": str(KEYS)}
    command = [str(program), *(f"-{name}={value}" for name, value in options.items())]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S + seconds, check=False)
    if done.returncode:
        raise CaseFailed(done.stderr.strip() or f"the load ended with {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    if found["failures"] or not found["operations"]:
        raise CaseFailed(f"{found['failures']} operations failed, such as: {found['first_error']}")
    found["servers_us"] = (side.processor_s() - before_s) * 1e6 / found["operations"]
    found["memory_mib"] = side.memory_mib()
    return found


def run_turn(program: Path, name: str, cases: dict[str, Case], seconds: float, runs: dict[str, Any]) -> None:
    """Start one side, fill it, run all loads, and end it. A failure is recorded, and the run continues."""
    folder = Path(tempfile.mkdtemp(prefix="key-value-", dir=BUILD))
    try:
        with SIDES[name](folder) as side:
            measure(program, side, Case("fill", 64), LIMIT_S)
            measure(program, side, Case("put", 64), 1.0)
            for case_name, case in cases.items():
                try:
                    runs.setdefault(case_name, {}).setdefault(name, []).append(measure(program, side, case, seconds))
                except FAULTS as error:
                    runs.setdefault(case_name, {}).setdefault(f"{name} failed", []).append(str(error))
    except FAULTS as error:
        runs.setdefault("start", {}).setdefault(f"{name} failed", []).append(str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def median(found: Sequence[dict[str, Any]], name: str) -> float:
    return statistics.median(one[name] for one in found) if found else float("nan")


def show(runs: dict[str, Any], cases: dict[str, Case]) -> None:
    table = Table(title="key-value: three nodes over three bookies, and three members of etcd, in turn; medians")
    for heading in ("case", "ours, 1/s", "etcd, 1/s", "ratio", "wanted", "median ms", "p99 ms", "servers µs", "memory MiB"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for name, case in cases.items():
        sides = [runs.get(name, {}).get(side, []) for side in (OURS, ETCD)]

        def pair(field: str, form: str, sides: list[Any] = sides) -> str:
            return " | ".join(format(median(found, field), form) for found in sides)

        rates = [median(found, "per_second") for found in sides]
        wanted = "" if case.target is None else f"{case.target:.1f}"
        figures = (pair("p50_ms", ".2f"), pair("p99_ms", ".1f"), pair("servers_us", ",.0f"), pair("memory_mib", ",.0f"))
        table.add_row(name, f"{rates[0]:,.0f}", f"{rates[1]:,.0f}", f"{rates[0] / rates[1]:.2f}", wanted, *figures)
    Console(width=150).print(table)
    for name, found in runs.items():
        for side, texts in found.items():
            if side.endswith("failed"):
                print(f"{name}: {side}: {texts[0]}")


def chosen(text: str, known: dict[str, Any], what: str) -> dict[str, Any]:
    names = text.split(",") if text else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no {what} {unknown[0]!r}; there are: {', '.join(known)}")
    return {name: known[name] for name in names}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sides", default="")
    parser.add_argument("--cases", default="")
    options = parser.parse_args()
    sides, cases = chosen(options.sides, SIDES, "side"), chosen(options.cases, CASES, "case")
    BUILD.mkdir(parents=True, exist_ok=True)
    try:
        program = build_driver()
    except FAILURES as error:
        sys.exit(str(error))
    runs: dict[str, Any] = {}
    for _ in range(options.rounds):
        for name in sides:
            run_turn(program, name, cases, options.seconds, runs)
    (BUILD / "key_value.json").write_text(json.dumps(runs, indent=1))
    show(runs, cases)
    return 1 if any(side.endswith("failed") for found in runs.values() for side in found) else 0


if __name__ == "__main__":
    sys.exit(main())
