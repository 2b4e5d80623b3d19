"""The table of attacks in docs/security.md has no empty cell, and names tests that exist and are not skipped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.compatibility import ROOT, exists
from tests.house.source import tree_of

PAGE = ROOT / "docs" / "security.md"
HEADING = "## Attacks"
DOORS = ("bookie", "client", "ZooKeeper", "database node", "key-value stores", "pages")
ATTACKS = (
    "no credentials",
    "wrong credentials",
    "expired",
    "other authority",
    "replay",
    "downgrade",
    "plain text on a TLS port",
    "a million half-open connections",
    "oversized handshake",
    "SQL user of another database",
)
NOT_RUN = ("skip", "skipif", "xfail")
HERE = "tests/house/test_attacks.py"
LAWFUL = "`tests/house/test_attacks.py::test_every_attack_on_every_door_has_a_test`"


def table_of(text: str) -> dict[str, list[str]]:
    """The cells of each attack of the one table in the section."""
    section = text.partition(f"\n{HEADING}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("| ")]
    return {attack: cells for attack, *cells in rows if attack != "attack"}


def cell_faults(table: dict[str, list[str]], root: Path = ROOT) -> Iterator[str]:
    """What is wrong with the cells: attacks and doors that lack one, and tests that are not there or do not run."""
    for attack in ATTACKS:
        cells = table.get(attack, [])
        if len(cells) != len(DOORS):
            yield f"{attack}: {len(cells)} cells for {len(DOORS)} doors"
        for door, cell in zip(DOORS, cells, strict=False):
            tests = re.findall(r"`([^`]+)`", cell)
            reason = cell.removeprefix("does not apply: ")
            if not tests and (reason == cell or not reason.strip()):
                yield f"{attack}, {door}: no test, and no reason why it does not apply"
            for test in tests:
                if not exists(test, root, tree_of):
                    yield f"{attack}, {door}: there is no test {test}"
                elif is_not_run(test, root):
                    yield f"{attack}, {door}: {test} is skipped or expected to fail"
    yield from (f"{attack}: not an attack of the list" for attack in table if attack not in ATTACKS)


def is_not_run(test: str, root: Path = ROOT) -> bool:
    """Whether a decorator of the test, or a mark of its module, may keep it from running or from failing."""
    path, _, name = test.partition("[")[0].rpartition("::")
    module = tree_of((root / path.partition("::")[0]).read_text(encoding="utf-8"))
    marks: list[ast.expr] = []
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            marks += node.decorator_list
        elif isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == "pytestmark" for one in node.targets):
            marks.append(node.value)
    return any(isinstance(node, ast.Attribute) and node.attr in NOT_RUN for mark in marks for node in ast.walk(mark))


def page_of(row: str) -> str:
    """A page with this row in the place of its own, and lawful others."""
    attack = row.split("|")[1].strip()
    rows = [row if one == attack else f"| {one} | {' | '.join(len(DOORS) * [LAWFUL])} |" for one in ATTACKS]
    return "\n".join(
        [
            "# Security",
            "",
            HEADING,
            "",
            "| attack | 1 | 2 | 3 | 4 | 5 | 6 |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
            "## More",
            "| x |",
        ]
    )


def test_every_attack_on_every_door_has_a_test() -> None:
    assert list(cell_faults(table_of(PAGE.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (f"{LAWFUL} | {LAWFUL} | {LAWFUL} | {LAWFUL} | {LAWFUL} |  |", "pages: no test, and no reason"),
        (f"{LAWFUL} | {LAWFUL} | {LAWFUL} | {LAWFUL} | {LAWFUL} | does not apply: |", "pages: no test, and no reason"),
        (f"{LAWFUL} | {LAWFUL} | {LAWFUL} | it is safe | {LAWFUL} | {LAWFUL} |", "database node: no test, and no reason"),
        (f"{LAWFUL} | {LAWFUL} | {LAWFUL} | {LAWFUL} |", "replay: 4 cells for 6 doors"),
        (f"{LAWFUL} | `{HERE}::test_that_was_renamed` | {LAWFUL} | {LAWFUL} | {LAWFUL} | {LAWFUL} |", "client: there is no test"),
        (f"{LAWFUL} | `{HERE}::test_left_out` | {LAWFUL} | {LAWFUL} | {LAWFUL} | {LAWFUL} |", "client: there is no test"),
    ],
)
def test_an_offending_row_is_reported(cells: str, message: str) -> None:
    faults = list(cell_faults(table_of(page_of(f"| replay | {cells}"))))
    assert len(faults) == 1
    assert message in faults[0]


def test_a_lawful_table_passes() -> None:
    page = page_of(f"| replay | {LAWFUL} | {LAWFUL} | does not apply: it has no user | {LAWFUL} | {LAWFUL} | {LAWFUL}, {LAWFUL} |")
    assert list(cell_faults(table_of(page))) == []


def test_an_attack_that_is_missing_or_unknown_is_reported() -> None:
    page = page_of(f"| replay | {' | '.join(len(DOORS) * [LAWFUL])} |").replace("| replay |", "| reply |")
    assert list(cell_faults(table_of(page))) == ["replay: 0 cells for 6 doors", "reply: not an attack of the list"]


@pytest.mark.parametrize(
    ("head", "is_reported"),
    [
        ("@pytest.mark.skip", True),
        ("@pytest.mark.skip(reason='slow')", True),
        ("@pytest.mark.skipif(True, reason='x')", True),
        ("@pytest.mark.xfail(strict=True)", True),
        ("@pytest.mark.parametrize('a', [pytest.param(1, marks=pytest.mark.xfail)])", True),
        ("pytestmark = pytest.mark.skip", True),
        ("pytestmark = [pytest.mark.slow, pytest.mark.skipif(True, reason='x')]", True),
        ("@pytest.mark.deep", False),
        ("", False),
    ],
)
def test_a_test_that_does_not_run_is_reported(tmp_path: Path, head: str, is_reported: bool) -> None:
    (tmp_path / "test_a.py").write_text(
        f"import pytest\n{head}\ndef test_b(a=1):\n    pass\n\n@pytest.mark.skip\ndef test_c():\n    pass\n"
    )
    table = dict.fromkeys(ATTACKS, len(DOORS) * ["`test_a.py::test_b`"])
    faults = list(cell_faults(table, tmp_path))
    assert len(faults) == (len(DOORS) * len(ATTACKS) if is_reported else 0)
    assert all("skipped or expected to fail" in fault for fault in faults)
