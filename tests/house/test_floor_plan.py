"""The floor plan: arrows between wings run down, nothing runs in a circle, and a name has one meaning over all rooms."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.floor_plan import MANY_ATTRIBUTES, PACKAGE, Plan, circles, crowded, read_plan
from tests.house.source import WINGS, plan_of
from tests.house.wings import upward

NAMES_ALLOWED: frozenset[str] = frozenset()
"""May only shrink."""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of(PACKAGE)


def repeats(plan: Plan) -> set[str]:
    """Names of classes and of files that stand in more than one place; names for one module's use do not count."""
    files: dict[str, int] = {}
    for module in plan.lines:
        name = module.rpartition(".")[2]
        files[name] = files.get(name, 0) + (name != "__init__")
    classes = {name for name, places in plan.classes.items() if len(places) > 1}
    return classes | {name for name, count in files.items() if count > 1}


def test_every_wing_has_its_floor(plan: Plan) -> None:
    found: dict[str, set[str]] = {}
    for module in plan.lines:
        room, _, wing = module.removesuffix(".__init__").rpartition(".")
        if room and module.endswith(".__init__"):
            found.setdefault(room, set()).add(wing)
    assert {room: set(order) for room, order in WINGS.items()} == found


@pytest.mark.parametrize("room", WINGS)
def test_arrows_between_wings_run_down(plan: Plan, room: str) -> None:
    assert not list(upward(WINGS[room], plan.wings(room)))


def test_nothing_runs_in_a_circle(plan: Plan) -> None:
    modules = {module: others for module, others in plan.imports.items() if not module.endswith("__init__")}
    found = {tuple(circle) for graph in (plan.rooms(), modules, *map(plan.wings, plan.rooms())) for circle in circles(graph)}
    found -= {circle for circle in found if any(all(f"{room}.{node}" in modules for node in circle) for room in plan.rooms())}
    assert not found


def test_a_name_has_one_meaning_over_all_rooms(plan: Plan) -> None:
    assert repeats(plan) == NAMES_ALLOWED


def test_no_object_has_many_attributes(plan: Plan) -> None:
    """An object with more of them hides another one: name it."""
    assert crowded(plan) == {}


def test_the_checks_report_what_they_look_for(tmp_path: Path) -> None:
    package = tmp_path / "triplicate"
    body = "".join(f"        self.x{number} = 0\n" for number in range(MANY_ATTRIBUTES + 1))
    for path, text in {
        "a/__init__.py": "",
        "a/low/__init__.py": "",
        "a/low/one.py": "from triplicate.a.high import two\nclass Thing: ...",
        "a/high/__init__.py": "",
        "a/high/two.py": "from triplicate.a.low.one import Thing",
        "a/high/one.py": "class Thing:\n    def __init__(self): self.x, self.y = 1, 2",
        "a/high/three.py": "".join(f"class {name}:\n    def __init__(self):\n{body}" for name in ("Crowd", "ASettings", "BMetrics")),
    }.items():
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_text(text)
    plan = read_plan(package)
    assert list(upward(("low", "high"), plan.wings("a"))) == [
        "low imports high, which stands above it; move the shared part down, or hand the object in from above"
    ]
    assert circles(plan.wings("a")) == [["high", "low"]]
    assert circles(plan.imports) == [["a.high.two", "a.low.one"]]
    assert repeats(plan) == {"Thing", "one"}
    assert plan.attributes["a.high.one.Thing"] == 2
    assert crowded(plan) == {"a.high.three.Crowd": MANY_ATTRIBUTES + 1}
