"""Check docs/compatibility.md against the results of the tests that it names.

Usage: compatibility.py TARGET ...   (``test``, ``interop``, ``interop-full``; run after ``make TARGET``)

Every row of its tables that says *yes* names the tests that prove it and the ``make`` targets that run these. The script reads the
reports that the targets left in ``build/test`` and names each proof that did not run and pass there. Exit code 1: there is one.
That the named tests exist is a rule of the house (``tests/house/test_compatibility.py``).
"""

from __future__ import annotations

import ast
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "compatibility.md"
RESULTS = ROOT / "build" / "test"
STATES = ("yes", "later", "no")
TARGETS = ("test", "interop", "interop-full")
HEADINGS = ("feature", "state", "what to know", "proof", "where")
INTEROP = "tests/interop/"
PASSED = "passed"


@dataclass(frozen=True)
class Row:
    """One feature."""

    line: int
    feature: str
    state: str
    text: str
    tests: tuple[str, ...]
    """Node ids, with or without parameters."""
    targets: tuple[str, ...]

    def target_of(self, test: str) -> str:
        """The target that must have run a test: interop for those against Apache, unless the row names interop-full alone."""
        if not test.startswith(INTEROP):
            return "test"
        return "interop" if "interop" in self.targets else "interop-full"


def read_rows(text: str) -> list[Row]:
    """All rows of the tables with the headings `HEADINGS`; other tables are skipped."""
    rows: list[Row] = []
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            inside = False
        elif tuple(cell.lower() for cell in cells) == HEADINGS:
            inside = True
        elif inside and set("".join(cells)) - set("-: "):
            cells += [""] * (len(HEADINGS) - len(cells))
            feature, state, known, proof, where = cells[: len(HEADINGS)]
            targets = tuple(name.removeprefix("make ") for name in re.findall(r"`([^`]+)`", where))
            rows.append(Row(number, feature, state, known, tuple(re.findall(r"`([^`]+)`", proof)), targets))
    return rows


def row_faults(rows: list[Row], root: Path = ROOT, parse: Callable[[str], ast.Module] = ast.parse) -> Iterator[str]:
    """Faults of the rows themselves, independent of the tests' results."""
    seen: dict[str, int] = {}
    for row in rows:
        where = f"line {row.line}, {row.feature}"
        if row.feature in seen:
            yield f"{where}: also on line {seen[row.feature]}"
        seen[row.feature] = row.line
        if row.state not in STATES:
            yield f"{where}: the state is {row.state!r}; write one of {', '.join(STATES)}"
        if row.state == "yes" and not row.tests:
            yield f"{where}: a yes without a test; name one, or say later or no"
        if row.state in ("later", "no") and (row.tests or not row.text):
            yield f"{where}: {row.state} needs a reason, and no test"
        for target in row.targets:
            if target not in TARGETS:
                yield f"{where}: no such target: make {target}"
        for test in row.tests:
            if not exists(test, root, parse):
                yield f"{where}: there is no test {test}"
            elif is_deep(test, root, parse):
                yield f"{where}: {test} is marked deep: no target that the page names runs it"
            elif row.target_of(test) not in row.targets:
                yield f"{where}: {test} runs in make {row.target_of(test)}, which the row does not say"


Function = ast.FunctionDef | ast.AsyncFunctionDef
DEEP_MARK = "pytest.mark.deep"


def exists(test: str, root: Path = ROOT, parse: Callable[[str], ast.Module] = ast.parse) -> bool:
    """Whether a node id names a test function (or a method of a test class) of a file; parameters are ignored."""
    return function_of(test, root, parse) is not None


def is_deep(test: str, root: Path = ROOT, parse: Callable[[str], ast.Module] = ast.parse) -> bool:
    """Whether the whole test function of a node id is left to ``make check-deep``."""
    function = function_of(test, root, parse)
    return function is not None and DEEP_MARK in {ast.unparse(decorator) for decorator in function.decorator_list}


def function_of(test: str, root: Path, parse: Callable[[str], ast.Module]) -> Function | None:
    """The test function that a node id names, parameters ignored; None if the file has none of that name."""
    path, *names = test.partition("[")[0].split("::")
    file = root / path
    if not names or not names[-1].startswith("test") or not file.is_file():
        return None
    body: list[ast.stmt] = parse(file.read_text(encoding="utf-8")).body
    for name in names[:-1]:
        body = next((node.body for node in body if isinstance(node, ast.ClassDef) and node.name == name), [])
    functions = (node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return next((node for node in functions if node.name == names[-1]), None)


def outcomes_of(reports: list[Path]) -> dict[str, str]:
    """Node id → ``passed``, ``failed`` or ``skipped``, from pytest's reports."""
    found: dict[str, str] = {}
    for report in reports:
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            name = case.get("name", "")
            outcome = PASSED
            if case.find("failure") is not None or case.find("error") is not None:
                outcome = "failed"
            elif case.find("skipped") is not None:
                outcome = "skipped"
            key = f"{case.get('classname')}.{name}"
            # A test may appear twice, as when its teardown fails: the worse of the two counts.
            found[key] = outcome if found.get(key, PASSED) == PASSED else found[key]
    return found


def reports_of(target: str, results: Path = RESULTS) -> list[Path]:
    reports = sorted(results.glob("*.xml"))
    if target == "test":
        return [report for report in reports if not report.stem.startswith("interop")]
    return [report for report in reports if report.stem == target]


def unproven(rows: list[Row], target: str, outcomes: dict[str, str]) -> Iterator[str]:
    """Each proof of a *yes* that belongs to `target` and did not run and pass there."""
    for row in rows:
        if row.state != "yes":
            continue
        for test in row.tests:
            # The full run holds every test against Apache.
            if row.target_of(test) != target and not (target == "interop-full" and test.startswith(INTEROP)):
                continue
            mine = _matching(test, outcomes)
            if not mine:
                yield f"{row.feature}: {test} did not run in make {target}"
            elif set(mine) != {PASSED}:
                yield f"{row.feature}: {test} {next(one for one in mine if one != PASSED)} in make {target}"


def _matching(test: str, outcomes: dict[str, str]) -> list[str]:
    path, _, rest = test.partition("::")
    key = path.removesuffix(".py").replace("/", ".") + "." + rest.replace("::", ".")
    return [outcome for name, outcome in outcomes.items() if name == key or name.startswith(f"{key}[")]


def main(targets: list[str]) -> int:
    unknown = [target for target in targets if target not in TARGETS]
    if unknown or not targets:
        print(f"which of {', '.join(TARGETS)}?", file=sys.stderr)
        return 2
    rows = read_rows(PAGE.read_text(encoding="utf-8"))
    faults = list(row_faults(rows))
    for target in targets:
        faults += unproven(rows, target, outcomes_of(reports_of(target)))
    for fault in faults:
        print(f"docs/compatibility.md: {fault}")
    proofs = sum(len(row.tests) for row in rows)
    if not faults:
        print(f"docs/compatibility.md: {len(rows)} features, {proofs} proofs named; those of make {', '.join(targets)} ran and passed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
