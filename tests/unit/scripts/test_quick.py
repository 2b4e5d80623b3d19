"""Which tests the quick check chooses."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import imports, quick

GRAPH = {
    "src/triplicate/a.py": frozenset[str](),
    "src/triplicate/b.py": frozenset({"src/triplicate/a.py"}),
    "tests/unit/rig.py": frozenset({"src/triplicate/b.py"}),
    "tests/unit/test_a.py": frozenset({"src/triplicate/a.py"}),
    "tests/unit/test_b.py": frozenset({"tests/unit/rig.py"}),
    "tests/unit/test_c.py": frozenset[str](),
    "tests/process/test_d.py": frozenset({"src/triplicate/a.py"}),
}


def test_files_are_as_far_as_the_imports_that_lead_to_a_change() -> None:
    found = quick.distances(GRAPH, ["src/triplicate/a.py"])
    assert {path: steps for path, steps in found.items() if path.startswith("tests/unit/test")} == {
        "tests/unit/test_a.py": 1,
        "tests/unit/test_b.py": 3,
    }


def test_the_nearest_tests_run_as_long_as_their_time_allows() -> None:
    changed = ["src/triplicate/a.py"]
    assert quick.near_tests(GRAPH, changed, {}) == (["tests/unit/test_a.py", "tests/unit/test_b.py"], 0)
    assert quick.near_tests(GRAPH, changed, {"tests/unit/test_b.py": 1000.0}) == (["tests/unit/test_a.py"], 1)
    assert quick.near_tests(GRAPH, changed, {"tests/unit/test_a.py": 1000.0}) == (["tests/unit/test_b.py"], 1)


def test_a_test_file_that_was_changed_runs_however_long_it_takes() -> None:
    slow = {"tests/unit/test_c.py": 1000.0}
    assert quick.near_tests(GRAPH, ["tests/unit/test_c.py"], slow) == (["tests/unit/test_c.py"], 0)


def test_imports_of_modules_names_and_packages_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, text in {
        "src/triplicate/__init__.py": "",
        "src/triplicate/a.py": "",
        "tests/rig.py": "import triplicate.a",
        "tests/test_a.py": "from triplicate.a import name\nfrom tests import rig\nimport os",
        "tests/test_b.py": "from triplicate import name",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(imports, "ROOT", tmp_path)
    assert imports.import_graph() == {
        "src/triplicate/__init__.py": frozenset(),
        "src/triplicate/a.py": frozenset(),
        "tests/rig.py": {"src/triplicate/a.py"},
        "tests/test_a.py": {"src/triplicate/a.py", "tests/rig.py"},
        "tests/test_b.py": {"src/triplicate/__init__.py"},
    }
