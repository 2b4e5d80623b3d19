"""Measure how long tests wait for the fixtures of `triplicate.testing.plugin`: until each can be used, and at its end.

    python -m benchmarks.testing_fixtures [--rounds 3] [--tests 10]

Each round is a run of pytest in a process of its own. The first fixture of a run also imports the package, which is a row of its own.
Python's bytecode is kept, as it is where a package was installed: a first run, which is not counted, compiles it.
Prints a table and writes ``build/bench/testing_fixtures.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ("import", "triplicate_cluster", "triplicate_log", "triplicate_database", "triplicate_key_value")
TARGET_S = 1.0
LIMIT_S = 300.0

CONFTEST = """
import json
import time
from pathlib import Path

import pytest

pytest_plugins = ["triplicate.testing.plugin"]
TIMES = {}


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    begun = time.perf_counter()
    if fixturedef.argname == "triplicate_cluster":
        import triplicate.testing.shared_cluster

        now = time.perf_counter()
        TIMES["import"] = {"begin_s": [now - begun], "end_s": [0.0]}
        begun = now
    try:
        return (yield)
    finally:
        TIMES.setdefault(fixturedef.argname, {"begin_s": [], "end_s": []})["begin_s"].append(time.perf_counter() - begun)


def pytest_runtest_logreport(report):
    if report.when == "teardown":
        name = report.nodeid.partition("::test_")[2].partition("[")[0]
        TIMES[f"triplicate_{name}"]["end_s"].append(report.duration)


def pytest_sessionfinish():
    Path("times.json").write_text(json.dumps(TIMES))
"""
TESTS = '''
import pytest

each = pytest.mark.parametrize("number", range({tests}))


@each
def test_log(triplicate_log, number):
    with triplicate_log.logs.writer(triplicate_log.name, owner="test") as writer:
        assert writer.append(b"a") == 0


@each
def test_database(triplicate_database, number):
    triplicate_database.execute("create table t(a)")


@each
def test_key_value(triplicate_key_value, number):
    triplicate_key_value.put(b"a", b"1")


def test_cluster(triplicate_cluster):
    """The last one: its end is that of the cluster."""
'''


def measure(tests: int, bytecode: str) -> dict[str, dict[str, list[float]]]:
    """Seconds of one run of pytest, by fixture: until each could be used, and at its end.

    Args:
        tests: for each fixture of a test. bytecode: the folder of Python's bytecode.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    with tempfile.TemporaryDirectory(prefix="testing-fixtures-") as folder:
        Path(folder, "conftest.py").write_text(CONFTEST)
        Path(folder, "test_fixtures.py").write_text(TESTS.format(tests=tests))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, folder]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=environment)
        if done.returncode:
            raise SystemExit(f"pytest failed:\n{done.stdout}{done.stderr}")
        times: dict[str, dict[str, list[float]]] = json.loads(Path(folder, "times.json").read_text())
        return times


def rows_of(runs: list[dict[str, dict[str, list[float]]]]) -> list[dict[str, Any]]:
    rows = []
    for fixture in FIXTURES:
        begins, ends = ([seconds for run in runs for seconds in run[fixture][name]] for name in ("begin_s", "end_s"))
        row = {"fixture": fixture, "times": len(begins), "median_s": statistics.median(begins), "worst_s": max(begins)}
        rows.append(row | {"end_median_s": statistics.median(ends), "end_worst_s": max(ends)})
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    table = Table(title=f"seconds until a fixture can be used, target {TARGET_S:g}")
    for title in ("fixture", "times", "median", "worst", "end, median", "end, worst", "target"):
        table.add_column(title, justify="left" if title == "fixture" else "right")
    for row in rows:
        figures = [f"{row[name]:.3f}" for name in ("median_s", "worst_s", "end_median_s", "end_worst_s")]
        table.add_row(row["fixture"], str(row["times"]), *figures, "met" if row["worst_s"] <= TARGET_S else "not met")
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tests", type=int, default=10, help="for each fixture of a test")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="testing-fixtures-bytecode-") as bytecode:
        measure(1, bytecode)
        rows = rows_of([measure(given.tests, bytecode) for _ in range(given.rounds)])
    show(rows)
    target = ROOT / "build" / "bench" / "testing_fixtures.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"load_at_start": load, "cpus": os.cpu_count(), "fixtures": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
