"""The mutants' runner itself: it catches what it should, and says so when a mutant proves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import plugin, run


def test_a_mutant_without_a_docstring_or_tests_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("TESTS = ['tests/x.py::test_y']\n")
    with pytest.raises(ValueError, match="docstring"):
        run.read_mutant(path)
    path.write_text('"""Breaks it."""\nTESTS: list[str] = ["tests/x.py::test_y"]\n')
    assert run.read_mutant(path) == run.Mutant("m", "Breaks it.", ("tests/x.py::test_y",))


def test_a_patch_of_something_that_is_gone_is_an_error() -> None:
    with pytest.raises(pytest.UsageError, match="no longer fits"):
        plugin.patch(run, "no_such_function", None)


@pytest.mark.parametrize(
    ("outcomes", "caught"),
    [
        ({"t.py::a[1]": "passed", "t.py::a[2]": "failed"}, True),
        ({"t.py::a[1]": "passed"}, False),
        ({"t.py::a": "broken"}, False),
        ({"t.py::ab": "failed"}, False),
        ({}, False),
    ],
)
def test_only_a_failure_of_the_named_test_counts(outcomes: dict[str, str], caught: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "run_pytest", lambda tests, mutant: (outcomes, "" if outcomes else "nothing ran"))
    verdict = run.judge(run.Mutant("m", "x", ("t.py::a",)))
    assert verdict.caught is caught
    assert caught or verdict.note
