"""Every mutant names tests that exist and attributes that exist: `make mutants` is run more rarely than code and tests are moved."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from scripts.compatibility import exists
from tests.house.source import tree_of
from tests.mutants.run import HERE, OURS, read_mutant

MUTANTS = sorted(path for path in HERE.glob("*.py") if path.stem not in OURS)


SIM_MUTANTS = sorted((HERE / "sim").glob("*.py"))


def misfit(path: Path) -> str:
    """Why a mutant does not fit the code; empty where it does."""
    spec = importlib.util.spec_from_file_location(f"mutant_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    patched: list[str] = []

    def patch(owner: object, name: str, _replacement: object) -> None:
        if not hasattr(owner, name):
            raise AttributeError(f"{owner} has no {name}")
        patched.append(name)

    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.apply(patch)
    except (AttributeError, ImportError) as error:
        return str(error)
    return "" if patched else "it patches nothing"


def gone(path: Path) -> list[str]:
    return [test for test in read_mutant(path).tests if not exists(test, parse=tree_of)]


def test_every_mutant_names_tests_that_exist() -> None:
    assert len(MUTANTS) > 100
    assert {path.stem: gone(path) for path in MUTANTS if gone(path)} == {}


@pytest.mark.parametrize("test", ["tests/house/test_mutants.py::test_that_went_away", "tests/house/test_gone.py::test_x", "tests/house"])
def test_a_test_that_went_away_is_reported(tmp_path: Path, test: str) -> None:
    path = tmp_path / "breaks_something.py"
    path.write_text(f'"""Something is broken."""\n\nTESTS = ["{test}"]\n')
    assert gone(path) == [test]


def test_every_mutant_fits_the_code() -> None:
    assert len(SIM_MUTANTS) > 50
    found = {path.name: misfit(path) for path in (*MUTANTS, *SIM_MUTANTS)}
    assert {name: why for name, why in found.items() if why} == {}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("patch(os, 'no_such_name', None)", "has no no_such_name"),
        ("os.no_such_name", "has no attribute 'no_such_name'"),
        ("pass", "it patches nothing"),
    ],
)
def test_a_mutant_that_does_not_fit_is_reported(tmp_path: Path, body: str, why: str) -> None:
    path = tmp_path / "breaks_something.py"
    path.write_text(f"import os\n\ndef apply(patch):\n    {body}\n")
    assert why in misfit(path)
