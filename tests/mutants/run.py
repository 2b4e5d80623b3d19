"""Break the code on purpose, one way at a time, and see a test turn red.

Usage: run.py [NAME ...]   (all mutants when none is named)

A mutant is a file beside this one: a docstring that says what is broken, ``TESTS`` (node ids that must turn red), and
``apply(patch)``, which replaces attributes by ``patch(owner, "attribute", replacement)``. First all these tests must be green on the
code as it is. Then each mutant runs its tests in a process of its own, patched before anything is collected. A rule of the house is
a mutant turned round: the snippet is the broken code and the rule the test.
Exit code 1: a mutant survived, a test was red without a mutant, or a mutant no longer fits the code.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
OURS = ("run", "plugin", "__init__")
RULES_CATCH = "tests/house/test_rules_catch.py"
LIMIT_S = 180.0
"""Limit of one mutant's tests."""
GREEN_LIMIT_S = 1800.0
"""Limit of the tests of all mutants on the code as it is, which run in one process."""
# Python 3.11 may fail while pytest parses the source of a failure; with Python's own tracebacks it need not.
OPTIONS = ("-q", "--tb=native", "-p", "no:cacheprovider", "-p", "tests.mutants.plugin")
JOBS = 2


@dataclass(frozen=True)
class Mutant:
    name: str
    broken: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    name: str
    broken: str
    test: str
    caught: bool
    note: str
    seconds: float


def read_mutant(path: Path) -> Mutant:
    """Docstring and TESTS, read without importing: importing is for the patched process.

    Raises:
        ValueError: a part is missing.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstring = ast.get_docstring(tree)
    tests: tuple[str, ...] = ()
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if value is not None and any(isinstance(target, ast.Name) and target.id == "TESTS" for target in targets):
            tests = tuple(ast.literal_eval(value))
    if not docstring or not tests:
        raise ValueError(f"{path.name}: a mutant has a docstring that says what is broken and a list TESTS")
    return Mutant(path.stem, docstring.splitlines()[0], tests)


def run_pytest(tests: tuple[str, ...], mutant: str | None) -> tuple[dict[str, str], str]:
    """Outcomes by node id (``passed``, ``failed``, ``broken``, ``skipped``), and why there are none when there are none."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "outcomes.json"
        # The same examples each time (tests/conftest.py), so that no mutant survives by chance, and none is caught by it.
        environment = {**os.environ, "CI": "true", "TRIPLICATE_MUTANT_REPORT": str(report)}
        environment.pop("TRIPLICATE_MUTANT", None)
        if mutant is not None:
            environment["TRIPLICATE_MUTANT"] = mutant
        # One red test is enough, so a mutant of a single test stops there.
        stop = ["-x"] if mutant is not None and len(tests) == 1 else []
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--tb=native",
            "-p",
            "no:cacheprovider",
            "-p",
            "tests.mutants.plugin",
            *stop,
            *tests,
        ]
        limit_s = GREEN_LIMIT_S if mutant is None else LIMIT_S
        try:
            answer = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit_s, check=False, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            return {}, f"no verdict within {limit_s:.0f} s"
        outcomes: dict[str, str] = json.loads(report.read_text()) if report.exists() else {}
        lines = [line for line in (answer.stdout + answer.stderr).splitlines() if line.strip()]
        return outcomes, "" if outcomes else f"nothing ran: {lines[-1] if lines else 'no output'}"


def judge(mutant: Mutant) -> Verdict:
    started = time.monotonic()
    outcomes, note = run_pytest(mutant.tests, mutant.name)
    caught = bool(outcomes)
    for test in mutant.tests:
        mine = [outcome for name, outcome in outcomes.items() if name == test or name.startswith((f"{test}[", f"{test}::"))]
        if "failed" not in mine:
            caught = False
            happened = "broke before it could judge" if "broken" in mine else "stayed green" if mine else "did not run"
            note = note or f"{test} {happened}"
    return Verdict(mutant.name, mutant.broken, ", ".join(mutant.tests), caught, note, time.monotonic() - started)


def green_without(mutants: list[Mutant]) -> list[str]:
    """The mutants' tests that are not green on the code as it is."""
    tests = tuple(sorted({test for mutant in mutants for test in mutant.tests}))
    outcomes, note = run_pytest(tests, None)
    if note:
        return [note]
    return [f"{name} is {outcome} without any mutant" for name, outcome in sorted(outcomes.items()) if outcome != "passed"]


def house_rules() -> list[Verdict]:
    """One row for each rule of the house: caught when every one of its offending snippets is reported."""
    started = time.monotonic()
    outcomes, note = run_pytest((RULES_CATCH,), None)
    by_rule: dict[str, list[str]] = {}
    for name, outcome in outcomes.items():
        if "::test_the_rule_reports" in name or "::test_a_place_" in name:
            case = name.partition("[")[2].rstrip("]").rpartition("-")[0]
            by_rule.setdefault(case or "text_names_no_place", []).append(outcome)
    seconds = (time.monotonic() - started) / max(1, len(by_rule))
    rows = [
        Verdict(f"house: {rule}", f"{len(mine)} offending snippets", RULES_CATCH, set(mine) == {"passed"}, "not reported", seconds)
        for rule, mine in by_rule.items()
    ]
    return rows or [Verdict("house", "every rule's offending snippets", RULES_CATCH, False, note, seconds)]


def show(verdicts: list[Verdict], console: Console) -> None:
    table = Table(title="mutants", title_justify="left")
    for heading in ("mutant", "what is broken", "test", "verdict", "s"):
        table.add_column(heading, justify="right" if heading == "s" else "left", overflow="fold")
    for verdict in verdicts:
        word = "[green]caught[/]" if verdict.caught else "[bold red]SURVIVED[/]"
        files = dict.fromkeys(test.partition("::")[0].removeprefix("tests/") for test in verdict.test.split(", "))
        table.add_row(verdict.name, Text(verdict.broken), "\n".join(files), word, f"{verdict.seconds:.1f}")
    console.print(table)
    for verdict in verdicts:
        if not verdict.caught:
            console.print(Text(f"{verdict.name} survived: {verdict.note}"))


def main(names: list[str]) -> int:
    console = Console(width=None if sys.stdout.isatty() else 160)
    mutants = [read_mutant(path) for path in sorted(HERE.glob("*.py")) if path.stem not in OURS]
    unknown = sorted(set(names) - {mutant.name for mutant in mutants})
    if unknown:
        console.print(f"no mutant {unknown[0]}; there are: {', '.join(mutant.name for mutant in mutants)}")
        return 2
    chosen = [mutant for mutant in mutants if not names or mutant.name in names]
    red = green_without(chosen) if chosen else []
    for line in red:
        console.print(f"[bold red]{line}[/]", highlight=False)
    if red:
        return 1
    with Progress(console=Console(stderr=True), transient=True) as progress, ThreadPoolExecutor(max_workers=JOBS) as pool:
        verdicts = []
        for verdict in progress.track(pool.map(judge, chosen), total=len(chosen), description="mutants"):
            # A run takes hours: one that is cut off has shown what it had judged.
            progress.console.print(f"{verdict.name}: {'caught' if verdict.caught else 'SURVIVED'}", highlight=False)
            verdicts.append(verdict)
    verdicts += [] if names else house_rules()
    show(verdicts, console)
    survivors = [verdict for verdict in verdicts if not verdict.caught]
    console.print(f"{len(verdicts) - len(survivors)} caught, {len(survivors)} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
