"""Every mutant names tests that exist: `make mutants` is run more rarely than tests are moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.compatibility import exists
from tests.mutants.run import HERE, OURS, read_mutant

MUTANTS = sorted(path for path in HERE.glob("*.py") if path.stem not in OURS)


def gone(path: Path) -> list[str]:
    return [test for test in read_mutant(path).tests if not exists(test)]


def test_every_mutant_names_tests_that_exist() -> None:
    assert len(MUTANTS) > 100
    assert {path.stem: gone(path) for path in MUTANTS if gone(path)} == {}


@pytest.mark.parametrize("test", ["tests/house/test_mutants.py::test_that_went_away", "tests/house/test_gone.py::test_x", "tests/house"])
def test_a_test_that_went_away_is_reported(tmp_path: Path, test: str) -> None:
    path = tmp_path / "breaks_something.py"
    path.write_text(f'"""Something is broken."""\n\nTESTS = ["{test}"]\n')
    assert gone(path) == [test]
