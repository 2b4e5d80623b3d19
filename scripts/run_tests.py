"""Run the checks and tests in parts, each a process of its own, and close with one line of counts.

Usage: run_tests.py [PART ...]   (all parts but the long ones when none is named)

Each part leaves ``build/test/<part>.log``, and where it is pytest's ``build/test/<part>.xml``. Parts that only compute run two at a
time, then those that start servers and wait for them most of their time, also two at a time. A part that needs both processors runs alone.
A part whose folder holds no tests is left out. The last line printed is ``N passed, N failed, N skipped``; the exit code is 1 when anything
failed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "test"
BIN = Path(sys.executable).parent
INTEROP_LIMIT_S = 16 * 60.0
INTEROP_FULL_LIMIT_S = 40 * 60.0
INTEROP_TABLE = "build/interop/table.md"
POLL_S = 0.05
DIFFERENTIAL_SUMMARY = "build/differential/summary.txt"
CODE_FOLDERS = ("src", "simulator", "demo", "tests", "scripts", "benchmarks")

UPPER_UNITS = ("log", "replica", "sql", "spark", "cli", "sim", "simulator")
"""About half of the unit tests by time: the other half runs beside them."""

OUTAGES = tuple(
    f"tests/process/test_{name}.py"
    for name in ("nodes_outlive_zookeeper", "zookeeper_gone", "machine_dies", "up_zookeeper", "histories", "database_snapshots")
)
"""Tests of processes that wait for sessions to end most of their time: the others run beside them."""


class Turn(Enum):
    """When a part runs, in this order."""

    COMPUTE = "two at a time"
    SERVERS = "two at a time, after those that compute"
    ALONE = "without a neighbour"


@dataclass(frozen=True)
class Part:
    """One process: either a checker (`command`) or pytest over `folders`."""

    name: str
    folders: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    turn: Turn = Turn.COMPUTE
    limit_s: float = 900.0
    only_by_name: bool = False
    """Too long for every run: left out unless it is named."""
    options: tuple[str, ...] = ()
    """Further options of pytest."""
    shows: str = ""
    """A file that the part leaves behind, to be printed with its result."""


@dataclass
class Outcome:
    part: Part
    passed: int = 0
    failed: int = 0
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0
    processor_s: float = 0.0
    """Processor time of its process and of every descendant that its parent waited for."""
    note: str = ""


def code_folders() -> tuple[str, ...]:
    return tuple(name for name in CODE_FOLDERS if any((ROOT / name).rglob("*.py")))


def test_files(name: str) -> list[str]:
    """The test files and folders in a folder of the tests, from the checkout on."""
    found = [path for path in (ROOT / "tests" / name).iterdir() if path.is_dir() or path.name.startswith("test_")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def parts() -> list[Part]:
    return [
        Part("unit", folders=("tests/golden", *(name for name in test_files("unit") if Path(name).name not in UPPER_UNITS))),
        Part("unit-upper", folders=tuple(f"tests/unit/{name}" for name in UPPER_UNITS)),
        Part("types", command=(str(BIN / "mypy"), "--no-error-summary", *code_folders())),
        Part("property", folders=("tests/property",)),
        Part("crash", folders=("tests/crash",)),
        Part("house", folders=("tests/house",)),
        Part("fuzz", folders=("tests/fuzz",)),
        Part("lint", command=(str(BIN / "ruff"), "check", "--output-format=concise", *code_folders())),
        Part("format", command=(str(BIN / "ruff"), "format", "--check", *code_folders())),
        Part("process", folders=tuple(name for name in test_files("process") if name not in OUTAGES), turn=Turn.SERVERS),
        Part("outages", folders=OUTAGES, turn=Turn.SERVERS),
        Part("spark", folders=("tests/spark",), turn=Turn.SERVERS, limit_s=1500.0),
        Part("clients", folders=("tests/clients",), turn=Turn.SERVERS),
        Part("differential", folders=("tests/differential",), turn=Turn.SERVERS, shows=DIFFERENTIAL_SUMMARY),
        Part("simulation", folders=("tests/simulation",), turn=Turn.ALONE),
        Part("spark-deep", folders=("tests/spark_deep",), turn=Turn.ALONE, limit_s=1500.0, only_by_name=True),
        Part("demo-kill", folders=("tests/demo",), turn=Turn.ALONE, limit_s=1500.0, only_by_name=True),
        Part("interop", folders=("tests/interop",), turn=Turn.ALONE, limit_s=INTEROP_LIMIT_S, only_by_name=True, shows=INTEROP_TABLE),
        Part(
            "interop-full",
            folders=("tests/interop",),
            turn=Turn.ALONE,
            limit_s=INTEROP_FULL_LIMIT_S,
            only_by_name=True,
            options=("--interop-full",),
            shows=INTEROP_TABLE,
        ),
    ]


def is_chosen(part: Part, names: list[str]) -> bool:
    return part.name in names if names else not part.only_by_name


def test_folders(part: Part) -> list[str]:
    return [name for name in part.folders if (ROOT / name).is_file() or any((ROOT / name).rglob("test_*.py"))]


def command_of(part: Part) -> list[str]:
    if part.command:
        return list(part.command)
    return [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--color=no",
        "--continue-on-collection-errors",
        f"--junit-xml={RESULTS / part.name}.xml",
        *part.options,
        *test_folders(part),
    ]


def environment(ours: Mapping[str, str], current: Path) -> dict[str, str]:
    """Variables of a part's process, from `ours`. `current` is the file for the name of the test that runs.

    Compiled modules are kept even where a container's image forbids it. Without them every server, command and Spark worker that a test
    starts compiles the sources again, which is more than half of its start.
    """
    return {**{name: value for name, value in ours.items() if name != "PYTHONDONTWRITEBYTECODE"}, "TRIPLICATE_CURRENT_TEST": str(current)}


def run_part(part: Part) -> Outcome:
    """Run one part in a session of its own, so that a part over its limit is ended with all its children."""
    outcome = Outcome(part)
    xml = RESULTS / f"{part.name}.xml"
    xml.unlink(missing_ok=True)
    if part.shows:
        (ROOT / part.shows).unlink(missing_ok=True)
    current = RESULTS / f"{part.name}.current"
    current.unlink(missing_ok=True)
    started = time.monotonic()
    with (RESULTS / f"{part.name}.log").open("w") as log:
        process = subprocess.Popen(
            command_of(part),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment(os.environ, current),
        )
        try:
            within_limit = wait_for_end(process.pid, part.limit_s)
        finally:
            # Also after a normal end: a test that left a server behind must not disturb the next part.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            code, outcome.processor_s = collect(process)
        if not within_limit:
            running = f" in {current.read_text()}" if current.exists() else ""
            outcome.note = f"ended after {part.limit_s:.0f} s{running}"
    outcome.seconds = time.monotonic() - started
    if part.command:
        outcome.passed, outcome.failed = (1, 0) if code == 0 else (0, 1)
    else:
        read_results(outcome, xml, code)
    return outcome


def wait_for_end(pid: int, limit_s: float) -> bool:
    """Wait until a child has ended, but leave its exit code and its processor time to `collect`; false when the limit is reached."""
    deadline = time.monotonic() + limit_s
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def collect(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Exit code and processor time in seconds of a child that has ended or was killed."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime


def read_results(outcome: Outcome, xml: Path, code: int) -> None:
    """Take the counts from pytest's own report; a run without a report, or red without a red test, is one failure."""
    if xml.exists():
        for case in ElementTree.parse(xml).getroot().iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            skipped = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                outcome.failed += 1
            elif skipped is not None:
                outcome.skipped.append(f"{name}: {skipped.get('message')}")
            else:
                outcome.passed += 1
    if code != 0 and outcome.failed == 0:
        outcome.failed = 1
        outcome.note = outcome.note or f"pytest ended with code {code}"


class Reporter:
    """Prints a part's result as it ends, the whole log when it is red."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def show(self, outcome: Outcome) -> None:
        with self._lock:
            if outcome.failed:
                print(f"\n---- {outcome.part.name}: failed ----", flush=True)
                print((RESULTS / f"{outcome.part.name}.log").read_text(errors="replace"), flush=True)
            state = "FAILED" if outcome.failed else "ok"
            print(f"{outcome.part.name:<13}{state:<8}{outcome.passed:>5} passed{outcome.failed:>4} failed{len(outcome.skipped):>4} skipped"
                  f"{outcome.seconds:>8.1f} s{outcome.processor_s:>8.1f} s of a processor  {outcome.note}", flush=True)  # fmt: skip
            for line in outcome.skipped:
                print(f"    skipped {line}", flush=True)
            shown = ROOT / outcome.part.shows
            if outcome.part.shows and shown.exists():
                print(f"\n{shown.read_text()}", flush=True)


def run_all(chosen: list[Part]) -> list[Outcome]:
    reporter = Reporter()

    def run_and_show(part: Part) -> Outcome:
        outcome = run_part(part)
        reporter.show(outcome)
        return outcome

    outcomes: list[Outcome] = []
    for turn in Turn:
        with ThreadPoolExecutor(max_workers=1 if turn is Turn.ALONE else 2) as pool:
            outcomes += pool.map(run_and_show, [part for part in chosen if part.turn is turn])
    return outcomes


def main(names: list[str]) -> int:
    known = parts()
    unknown = [name for name in names if name not in {part.name for part in known}]
    if unknown:
        print(f"no part {unknown[0]!r}; there are: {', '.join(part.name for part in known)}", file=sys.stderr)
        return 2
    RESULTS.mkdir(parents=True, exist_ok=True)
    chosen = [part for part in known if is_chosen(part, names) and (part.command or test_folders(part))]
    started = time.monotonic()
    outcomes = run_all(chosen)
    passed = sum(outcome.passed for outcome in outcomes)
    failed = sum(outcome.failed for outcome in outcomes)
    skipped = sum(len(outcome.skipped) for outcome in outcomes)
    processor_s = sum(outcome.processor_s for outcome in outcomes)
    print(f"\n{len(outcomes)} parts in {time.monotonic() - started:.0f} s, {processor_s:.0f} s of a processor")
    print(f"logs in {RESULTS.relative_to(ROOT)}/; slowest tests: make times")
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
