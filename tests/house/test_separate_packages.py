"""The packages beside ours: no room imports them, their wings stand in order, and their names are no other room's."""

from __future__ import annotations

import ast

import pytest

from scripts.floor_plan import PACKAGE, circles
from tests.house.source import ROOT, SEPARATE, plan_of, python_files, read
from tests.house.wings import upward

NAMES = tuple(folder.rpartition("/")[2] for folder in SEPARATE)


def test_no_room_imports_a_separate_package() -> None:
    found = [
        f"{path} line {each.line}: imports {each.module}"
        for path in python_files()
        if path.startswith("src/")
        for each in read(path).imports
        if each.module.partition(".")[0] in NAMES
    ]
    assert not found, "the library is shipped without these packages; name the command's module in COMMANDS of cli/main.py"


@pytest.mark.parametrize(("folder", "wings"), SEPARATE.items())
def test_arrows_run_down_and_in_no_circle(folder: str, wings: tuple[str, ...]) -> None:
    plan = plan_of(ROOT / folder)
    assert set(wings) == {module.partition(".")[0] for module in plan.lines if "." in module} - {"__init__"}
    assert not list(upward(wings, plan.rooms()))
    assert not circles({module: others for module, others in plan.imports.items() if not module.endswith("__init__")})


@pytest.mark.parametrize("folder", SEPARATE)
def test_a_wing_exports_nothing_by_itself(folder: str) -> None:
    for path in sorted((ROOT / folder).rglob("*/__init__.py")):
        body = read(path.relative_to(ROOT).as_posix()).tree.body
        assert [type(node) for node in body] == [ast.Expr], f"{path}: a wing's __init__ is a docstring; import from the module itself"


def test_class_names_are_no_other_rooms() -> None:
    ours = plan_of(PACKAGE).classes
    places: dict[str, list[str]] = {}
    for folder in SEPARATE:
        for name, modules in plan_of(ROOT / folder).classes.items():
            places.setdefault(name, []).extend(modules)
    assert not [name for name, modules in places.items() if len(modules) > 1 or name in ours]
