"""What is shipped: the library's wheel has neither the simulator nor the demonstration, which are packages of their own."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from setuptools import find_packages  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]


def project(folder: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))


def packages(folder: str) -> list[str]:
    """The packages that a wheel of this folder has."""
    found = project(folder)["tool"]["setuptools"]["packages"]["find"]
    return [name for where in found["where"] for name in find_packages(str(ROOT / folder / where), include=found.get("include", ["*"]))]


def test_the_library_ships_neither_simulator_nor_demonstration() -> None:
    tops = {name.partition(".")[0] for name in packages(".")}
    assert tops == {"triplicate"}
    assert project(".")["tool"]["setuptools"]["py-modules"] == [
        "pyspark_triplicate",
        "pyspark_triplicate_changes",
        "pyspark_triplicate_table",
    ]
    assert not {"triplicate.demo", "triplicate.sim.workloads", "triplicate.sim.runner"} & set(packages("."))


def test_every_folder_of_the_library_is_a_package() -> None:
    source = ROOT / "src"
    folders = {path.parent.relative_to(source).as_posix().replace("/", ".") for path in (source / "triplicate").rglob("*.py")}
    assert folders == set(packages("."))


@pytest.mark.parametrize(("folder", "package"), [("simulator", "triplicate_simulator"), ("demo", "triplicate_demo")])
def test_a_separate_package_ships_itself_alone(folder: str, package: str) -> None:
    assert {name.partition(".")[0] for name in packages(folder)} == {package}
    folders = {path.parent.relative_to(ROOT / folder).as_posix().replace("/", ".") for path in (ROOT / folder / package).rglob("*.py")}
    assert folders == set(packages(folder))


@pytest.mark.parametrize("folder", ["simulator", "demo"])
def test_packages_are_released_together(folder: str) -> None:
    assert project(folder)["project"]["version"] == project(".")["project"]["version"]
    assert project(folder)["project"]["requires-python"] == project(".")["project"]["requires-python"]
