"""Run the checks and tests in parts, each a process of its own, and close with one line of counts.

Usage: run_tests.py [PART ...]   (all parts but the long ones when none is named)

Each part writes ``build/test/<part>.log``, and a part of pytest also ``build/test/<part>.xml``. Two parts more run at a time than there are
processors, since most tests wait half of their time for a timeout or a disk. A part that needs every processor runs alone, after the
others. A part whose folder has no tests is left out. The last line is ``N passed, N failed, N skipped``; the exit code is 1 after any
failure.

A test of real processes depends on the machine. Where at most `UNSTEADY_MAX` of them are red in the whole run, each runs once more alone at
the end. If all of these pass, they are listed as unsteady, the log of their part stays, and the run is green; the next change must mend
them. A red test of any other part stays red.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "test"
BIN = Path(sys.executable).parent
INTEROP_LIMIT_S = 22 * 60.0
INTEROP_FULL_LIMIT_S = 45 * 60.0
INTEROP_TABLE = "build/interop/table.md"
LANES = 2 + (os.cpu_count() or 1)
POLL_S = 0.05
MEMORY = Path("/dev/shm")
"""Where Linux has a file system in memory. A container's often has 64 MiB only."""
MEMORY_NEEDED_BYTES = 2 << 30
EXAMPLES_SHARE = "0.5"
NOT_DEEP = ("-m", "not deep")
DIFFERENTIAL_SUMMARY = "build/differential/summary.txt"
CODE_FOLDERS = ("src", "simulator", "demo", "tests", "scripts", "benchmarks")

UPPER_UNITS = ("log", "replica", "sql", "spark", "cli", "sim", "simulator")
"""About half of the unit tests by time."""
DISK_UNITS = ("bookie", "metadata")
"""Unit tests that wait most of their time for the machine's disk."""

UNSTEADY_MAX = 2
"""Red tests of real processes that run again. More of them are no chance."""

OUTAGES = tuple(
    f"tests/process/test_{name}.py"
    for name in ("nodes_outlive_zookeeper", "zookeeper_gone", "machine_dies", "up_zookeeper", "histories", "database_snapshots")
)
"""Tests of processes that wait for sessions to end most of their time."""


class Turn(Enum):
    """When a part runs, in this order."""

    TOGETHER = "beside other parts"
    ALONE = "without a neighbour"


@dataclass(frozen=True)
class Part:
    """One process: either a checker (`command`) or pytest over `folders`."""

    name: str
    folders: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    turn: Turn = Turn.TOGETHER
    in_memory: bool = False
    """Whether its temporary files are in memory, where that has room."""
    limit_s: float = 1500.0
    """Limit of its time, several times its time on a slow machine: the tests that passed in an ended part are not counted."""
    has_processes: bool = False
    """Whether its tests start real servers, whose speed is the machine's."""
    only: tuple[str, ...] = ()
    """The tests to run, by their ids; empty for all of its folders."""
    only_by_name: bool = False
    """Whether the part is too long for every run, and runs only if named."""
    options: tuple[str, ...] = ()
    """Further options of pytest."""
    shows: str = ""
    """A file of the part that is printed with its result."""


@dataclass
class Outcome:
    part: Part
    passed: int = 0
    failed: int = 0
    red: list[str] = field(default_factory=list)
    """Ids of the failed tests."""
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0
    processor_s: float = 0.0
    """Processor time of its process, of every descendant that its parent waited for, and of those that still ran at its end."""
    note: str = ""


def code_folders() -> tuple[str, ...]:
    return tuple(name for name in CODE_FOLDERS if any((ROOT / name).rglob("*.py")))


def test_files(name: str) -> list[str]:
    """The test files and folders in a folder of the tests, from the checkout on."""
    found = [path for path in (ROOT / "tests" / name).iterdir() if path.is_dir() or path.name.startswith("test_")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def lower_units() -> list[str]:
    return [name for name in test_files("unit") if Path(name).name not in UPPER_UNITS + DISK_UNITS]


def parts() -> list[Part]:
    """All parts, in the order in which they start.

    Behind those that end at once come those that wait most of their time, beside which one that does not keeps the processors busy. Then
    the longest come first, so that nothing is left for one processor at the end.
    """
    return [
        Part("lint", command=(str(BIN / "ruff"), "check", "--output-format=concise", *code_folders())),
        Part("format", command=(str(BIN / "ruff"), "format", "--check", *code_folders())),
        Part("process", folders=tuple(name for name in test_files("process") if name not in OUTAGES), options=NOT_DEEP, has_processes=True),
        Part("spark", folders=("tests/spark",), has_processes=True),
        Part("outages", folders=OUTAGES, options=NOT_DEEP, has_processes=True),
        Part("unit-disk", folders=tuple(f"tests/unit/{name}" for name in DISK_UNITS), options=NOT_DEEP),
        Part("unit", folders=("tests/golden", *lower_units()), options=NOT_DEEP),
        Part("simulation", folders=("tests/simulation",)),
        Part("unit-upper", folders=tuple(f"tests/unit/{name}" for name in UPPER_UNITS), in_memory=True, options=NOT_DEEP),
        Part("property", folders=("tests/property",), in_memory=True),
        Part("clients", folders=("tests/clients",), has_processes=True),
        Part("differential", folders=("tests/differential",), shows=DIFFERENTIAL_SUMMARY),
        Part("house", folders=("tests/house",)),
        Part("types", command=(str(BIN / "mypy"), "--no-error-summary", *code_folders())),
        Part("crash", folders=("tests/crash",), in_memory=True),
        Part("fuzz", folders=("tests/fuzz",), in_memory=True),
        Part("process-deep", folders=("tests/process",), turn=Turn.ALONE, only_by_name=True, options=("-m", "deep")),
        Part("spark-deep", folders=("tests/spark_deep",), turn=Turn.ALONE, only_by_name=True),
        Part("demo-kill", folders=("tests/demo",), turn=Turn.ALONE, only_by_name=True),
        Part(
            "interop",
            folders=("tests/interop",),
            turn=Turn.ALONE,
            limit_s=INTEROP_LIMIT_S,
            only_by_name=True,
            shows=INTEROP_TABLE,
            has_processes=True,
        ),
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
        # The folder of a test that passed goes at once: some are in memory.
        "--override-ini=tmp_path_retention_policy=failed",
        f"--junit-xml={RESULTS / part.name}.xml",
        *part.options,
        *(part.only or test_folders(part)),
    ]


def environment(ours: Mapping[str, str], current: Path, temporary: Path | None) -> dict[str, str]:
    """Variables of a part's process, from `ours`.

    Compiled modules are kept even where a container's image forbids it. Without them every server, command and Spark worker that a test
    starts compiles the sources again, which is more than half of its start.

    Tests with generated input draw half of their examples, unless `ours` say otherwise; `make check-deep` runs all.

    Args:
        current: the file for the name of the test that runs.
        temporary: the folder for temporary files, where it is not the machine's own.
    """
    kept = {name: value for name, value in ours.items() if name != "PYTHONDONTWRITEBYTECODE"}
    folders = {} if temporary is None else {"TMPDIR": str(temporary)}
    return {"EXAMPLES_SHARE": EXAMPLES_SHARE, **kept, **folders, "TRIPLICATE_CURRENT_TEST": str(current)}


@contextlib.contextmanager
def temporary_folder(part: Part) -> Iterator[Path | None]:
    """A folder in memory for a part's temporary files; None where the part needs none, or memory has too little room.

    Tests of one process sync thousands of small files, and are judged by what they read back. A power cut is simulated there, never real.
    The parts with real servers stay on the machine's own disk, and so does the part with the bookie and the metadata drivers.
    """
    if not part.in_memory or not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < MEMORY_NEEDED_BYTES:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="tt-", dir=MEMORY, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # As the machine's own: some tests go on as another user.
        folder.chmod(0o1777)
        yield folder


def run_part(part: Part) -> Outcome:
    """Run one part in a new session, so that a part over its limit is ended with all its children."""
    outcome = Outcome(part)
    xml = RESULTS / f"{part.name}.xml"
    xml.unlink(missing_ok=True)
    if part.shows:
        (ROOT / part.shows).unlink(missing_ok=True)
    current = RESULTS / f"{part.name}.current"
    current.unlink(missing_ok=True)
    started = time.monotonic()
    with temporary_folder(part) as temporary, (RESULTS / f"{part.name}.log").open("w") as log:
        process = subprocess.Popen(
            command_of(part),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment(os.environ, current, temporary),
        )
        try:
            within_limit = wait_for_end(process.pid, part.limit_s)
        finally:
            outcome.processor_s = used_by_session(process.pid)
            # Also after a normal end: a server that a test left behind must not disturb the next part.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            code, used_s = collect(process)
            outcome.processor_s += used_s
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


def used_by_session(leader: int) -> float:
    """Processor seconds of the processes in a session, without its leader: what a part has left running, such as Spark's Java."""
    ticks = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name of the program may contain spaces, and ends with the last parenthesis.
            fields = file.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # It has ended meanwhile.
        if int(fields[3]) == leader != int(file.parent.name):
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def collect(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Exit code and processor time in seconds of a child that has ended or was killed."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime


def read_results(outcome: Outcome, xml: Path, code: int) -> None:
    """Read the counts from pytest's report. A run without a report, or failed without a failed test, is one failure."""
    if xml.exists():
        for case in ElementTree.parse(xml).getroot().iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            skipped = case.find("skipped")
            if is_red(case):
                outcome.failed += 1
                outcome.red.append(id_of(case))
            elif skipped is not None:
                outcome.skipped.append(f"{name}: {skipped.get('message')}")
            else:
                outcome.passed += 1
    if code != 0 and outcome.failed == 0:
        outcome.failed = 1
        outcome.note = outcome.note or f"pytest ended with code {code}"


def is_red(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def id_of(case: ElementTree.Element) -> str:
    """The id by which pytest runs a test of a report, which names its module with dots."""
    return f"{str(case.get('classname')).replace('.', '/')}.py::{case.get('name')}"


def try_again(outcomes: Sequence[Outcome]) -> list[str]:
    """Run the red tests of real processes once more, alone; returns those that passed then, and are green in `outcomes` from now on.

    Nothing runs again if another test is red, a part was ended or broke, or more than `UNSTEADY_MAX` tests are red.
    """
    red = [outcome for outcome in outcomes if outcome.failed]
    by_chance = all(outcome.part.has_processes and len(outcome.red) == outcome.failed and not outcome.note for outcome in red)
    if not red or not by_chance or sum(outcome.failed for outcome in red) > UNSTEADY_MAX:
        return []
    unsteady: list[str] = []
    for outcome in red:
        again = run_part(replace(outcome.part, name=f"{outcome.part.name}-again", only=tuple(outcome.red), shows=""))
        (RESULTS / f"{again.part.name}.xml").unlink(missing_ok=True)  # The part's own report says it.
        if again.failed or again.passed != outcome.failed:
            return []
        unsteady += outcome.red
    for outcome in red:
        outcome.passed, outcome.failed = outcome.passed + outcome.failed, 0
        settle(RESULTS / f"{outcome.part.name}.xml", outcome.red)
    return unsteady


def settle(xml: Path, tests: Sequence[str]) -> None:
    """Take the failures of tests that passed alone out of a report, from which the page of proofs is checked."""
    tree = ElementTree.parse(xml)
    for case in tree.getroot().iter("testcase"):
        if id_of(case) in tests:
            for failure in [child for child in case if child.tag in ("failure", "error")]:
                case.remove(failure)
    tree.write(xml)


class Reporter:
    """Prints a part's result at its end, and the whole log if it failed."""

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
        with ThreadPoolExecutor(max_workers=1 if turn is Turn.ALONE else LANES) as pool:
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
    unsteady = try_again(outcomes)
    for test in unsteady:
        print(f"UNSTEADY     {test}: failed beside other tests, passed alone; mend it next", flush=True)
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
