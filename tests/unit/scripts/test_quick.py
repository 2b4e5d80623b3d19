"""Which tests the quick check chooses."""

from __future__ import annotations

from scripts import quick

GRAPH = {
    "src/triplicate/a.py": frozenset[str](),
    "src/triplicate/b.py": frozenset({"src/triplicate/a.py"}),
    "tests/unit/rig.py": frozenset({"src/triplicate/b.py"}),
    "tests/unit/test_a.py": frozenset({"src/triplicate/a.py"}),
    "tests/unit/test_b.py": frozenset({"tests/unit/rig.py"}),
    "tests/unit/test_c.py": frozenset[str](),
    "tests/process/test_d.py": frozenset({"src/triplicate/a.py"}),
}


def test_the_nearest_tests_run_as_long_as_their_time_allows() -> None:
    changed = ["src/triplicate/a.py"]
    assert quick.near_tests(GRAPH, changed, {}) == (["tests/unit/test_a.py", "tests/unit/test_b.py"], 0)
    assert quick.near_tests(GRAPH, changed, {"tests/unit/test_b.py": 1000.0}) == (["tests/unit/test_a.py"], 1)
    assert quick.near_tests(GRAPH, changed, {"tests/unit/test_a.py": 1000.0}) == (["tests/unit/test_b.py"], 1)


def test_a_test_file_that_was_changed_runs_however_long_it_takes() -> None:
    slow = {"tests/unit/test_c.py": 1000.0}
    assert quick.near_tests(GRAPH, ["tests/unit/test_c.py"], slow) == (["tests/unit/test_c.py"], 0)
