"""Check the changed files within 90 seconds on two processors: style, types, house rules, near tests, a few seeds.

Usage: quick.py [COMMIT]   (changes since COMMIT; since the last commit when it is not named, or of that commit when nothing has changed)

A test file is near if it has changed, or if it imports a changed module directly or over few others. The nearest ones run, as many as
their last durations (``build/test/*.xml``) allow. The script prints the number of the others, which `make test` runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.imports import ROOT, distances, import_graph
from scripts.run_tests import EXAMPLES_SHARE, NOT_DEEP, Part, temporary_folder

BIN = Path(sys.executable).parent
RESULTS = ROOT / "build" / "test"
TEST_BUDGET_S = 45.0
"""Time of the near tests by their last durations. The seeds run behind them, within the 90 seconds."""

UNKNOWN_S = 2.0
SEEDS = "1..20"
TEST_FOLDERS = ("tests/unit/", "tests/property/", "tests/golden/")
CODE_FOLDERS = ("src", "simulator", "demo", "tests", "scripts", "benchmarks")


def changed_files(since: str | None) -> list[str]:
    """Python files that differ from a commit, including untracked ones."""
    names = _git("diff", "--name-only", since or "HEAD") + _git("ls-files", "--others", "--exclude-standard")
    if not names and since is None:
        names = _git("diff", "--name-only", "HEAD~1")
    return sorted({name for name in names if name.endswith(".py") and (ROOT / name).exists()})


def _git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def near_tests(graph: Mapping[str, frozenset[str]], changed: Sequence[str], durations: Mapping[str, float]) -> tuple[list[str], int]:
    """The test files to run, and the number of further ones that reach a changed file."""
    reached = distances(graph, changed)
    tests = [path for path in reached if path.startswith(TEST_FOLDERS) and Path(path).name.startswith("test_")]
    tests.sort(key=lambda path: (reached[path], durations.get(path, UNKNOWN_S), path))
    chosen: list[str] = []
    left_s = TEST_BUDGET_S
    for path in tests:
        duration_s = durations.get(path, UNKNOWN_S)
        if duration_s <= left_s or reached[path] == 0:
            chosen.append(path)
            left_s -= duration_s
    return chosen, len(tests) - len(chosen)


def last_durations() -> dict[str, float]:
    """Test file → its duration in the last runs, in seconds."""
    found: dict[str, float] = defaultdict(float)
    for report in RESULTS.glob("*.xml"):
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            found[f"{case.get('classname', '').replace('.', '/')}.py"] += float(case.get("time", "0"))
    return found


def run(name: str, command: Sequence[str], temporary: Path | None = None) -> bool:
    """Run one check and print its result. Its temporary files are in `temporary`, if given."""
    started = time.monotonic()
    folders = {} if temporary is None else {"TMPDIR": str(temporary)}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={"EXAMPLES_SHARE": EXAMPLES_SHARE, **os.environ, **folders},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    # Exit code 5 of pytest: no test was found.
    good = done.returncode in (0, 5) if "pytest" in command else done.returncode == 0
    print(f"{name:<8}{'ok' if good else 'FAILED':<8}{time.monotonic() - started:>6.1f} s", flush=True)
    if not good:
        print(done.stdout + done.stderr, flush=True)
    return good


def main(arguments: list[str]) -> int:
    started = time.monotonic()
    folders = [name for name in CODE_FOLDERS if (ROOT / name).exists()]
    changed = changed_files(arguments[0] if arguments else None)
    tests, further = near_tests(import_graph(), changed, last_durations())
    print(f"{len(changed)} files changed; {len(tests)} test files are near, {further} further ones reach them", flush=True)
    pytest = [sys.executable, "-m", "pytest", "-q", "--color=no"]

    def checks() -> bool:
        style = run("lint", [str(BIN / "ruff"), "check", "--output-format=concise", *folders])
        form = run("format", [str(BIN / "ruff"), "format", "--check", *folders])
        house = run("house", [*pytest, "tests/house"])
        return run("types", [str(BIN / "mypy"), "--no-error-summary", *folders]) and style and form and house

    def trials() -> bool:
        # In memory, and with as many examples, as in `make test`: the durations that limit the choice are those of there.
        with temporary_folder(Part("near", in_memory=True)) as folder:
            good = not tests or run("tests", [*pytest, *NOT_DEEP, *tests], folder)
        return run("seeds", [str(BIN / "triplicate"), "sim", "run", "--seeds", SEEDS, "--jobs", "1"]) and good

    with ThreadPoolExecutor(max_workers=2) as pool:
        results = [lane.result() for lane in [pool.submit(checks), pool.submit(trials)]]
    print(f"quick check {'passed' if all(results) else 'FAILED'} in {time.monotonic() - started:.0f} s", flush=True)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
