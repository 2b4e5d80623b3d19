"""The imports between the files of a checkout."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from scripts import imports


def test_files_are_as_far_as_the_imports_that_lead_to_a_change() -> None:
    graph = {
        "src/triplicate/a.py": frozenset[str](),
        "src/triplicate/b.py": frozenset({"src/triplicate/a.py"}),
        "tests/unit/rig.py": frozenset({"src/triplicate/b.py"}),
        "tests/unit/test_a.py": frozenset({"src/triplicate/a.py"}),
        "tests/unit/test_b.py": frozenset({"tests/unit/rig.py"}),
        "tests/unit/test_c.py": frozenset[str](),
    }
    found = imports.distances(graph, ["src/triplicate/a.py"])
    assert {path: steps for path, steps in found.items() if path.startswith("tests/unit/test")} == {
        "tests/unit/test_a.py": 1,
        "tests/unit/test_b.py": 3,
    }


def test_imports_of_modules_names_and_packages_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, text in {
        "src/triplicate/__init__.py": "from triplicate.a import exported",
        "src/triplicate/a.py": "",
        "src/triplicate/room/__init__.py": "",
        "src/triplicate/room/b.py": "from .. import name\nfrom . import c\nfrom .wing.d import name",
        "src/triplicate/room/c.py": "from ..a import name",
        "src/triplicate/room/wing/d.py": "from triplicate.room.wing_pb2 import Message",
        "tests/rig.py": "import triplicate.a",
        "tests/test_a.py": "from triplicate.a import name\nfrom tests import rig\nimport os",
        "tests/test_b.py": "from triplicate import name",
        "tests/test_c.py": "from triplicate import exported",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(imports, "ROOT", tmp_path)
    assert imports.import_graph() == {
        "src/triplicate/__init__.py": {"src/triplicate/a.py"},
        "src/triplicate/a.py": frozenset(),
        "src/triplicate/room/__init__.py": frozenset(),
        "src/triplicate/room/b.py": {"src/triplicate/__init__.py", "src/triplicate/room/c.py", "src/triplicate/room/wing/d.py"},
        "src/triplicate/room/c.py": {"src/triplicate/a.py"},
        "src/triplicate/room/wing/d.py": frozenset(),
        "tests/rig.py": {"src/triplicate/a.py"},
        "tests/test_a.py": {"src/triplicate/a.py", "tests/rig.py"},
        "tests/test_b.py": {"src/triplicate/__init__.py"},
        "tests/test_c.py": {"src/triplicate/__init__.py", "src/triplicate/a.py"},
    }


def test_imports_are_found_in_every_statement() -> None:
    blocks = ("if x:\n    {}\nelse:\n    {}", "for x in y:\n    {}\nelse:\n    {}", "while x:\n    {}\nelse:\n    {}", "with x:\n    {}")
    attempt = "try:\n    {}\nexcept A:\n    {}\nelse:\n    {}\nfinally:\n    {}"
    others = ("async def f():\n    {}", "class A:\n    def f(self):\n        {}", "match x:\n    case 1:\n        {}")
    text, count = "", 0
    for block in (*blocks, attempt, attempt.replace("except", "except*"), *others):
        places = block.count("{}")
        text += block.format(*(f"import m{number}" for number in range(count, count + places))) + "\n"
        count += places
    found = imports.imports_of(ast.parse(text), "a", is_package=False)
    assert sorted(each.module for each in found) == sorted(f"m{number}" for number in range(count))
