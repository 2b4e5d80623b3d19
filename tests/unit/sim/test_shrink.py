"""Shrinking: the faults and the load that a violation needs are left, the same checker reports, and runs are bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.sim.tiny import TinyLoad, tiny_plan
from triplicate.sim import NothingToShrink, Plan, Result, Strike, plan_from_json, shrink

pytestmark = pytest.mark.usefixtures("tiny")

NEEDED = ("crash", "clock")


def strike(kind: str, at_s: float) -> Strike:
    return Strike(kind, at_s, "bookie-1", lasts_s=2.0)


MANY = tiny_plan(
    *(strike(kind, 0.5 * index) for index, kind in enumerate(["kill", "crash", "pause", "reset", "clock", "stop", "kill"])), entries=64
)


def fake(seed: int, plan: Plan) -> Result:
    """Fails as long as both needed faults are there and ten entries are written; another checker complains where a kill is."""
    violations = []
    kinds = [found.kind for found in plan.faults]
    if all(kind in kinds for kind in NEEDED) and plan.load.entries >= 10:
        violations.append("nothing_is_found: what is looked for")
    if "kill" in kinds:
        violations.append("failed: something else")
    return Result(seed, plan.play, "", 1.0, {}, {}, [], violations)


def test_only_what_the_violation_needs_is_left() -> None:
    found = shrink(1, MANY, play=fake)
    assert tuple(left.kind for left in found.plan.faults) == NEEDED
    assert found.plan.load.entries == 10
    assert found.plan.duration_s <= 2.5
    assert all(left.lasts_s <= 0.2 for left in found.plan.faults)
    assert found.finding == "nothing_is_found"
    assert found.complete
    assert found.runs < 120


def test_a_plan_without_a_violation_is_nothing_to_shrink() -> None:
    with pytest.raises(NothingToShrink):
        shrink(1, replace(MANY, faults=()), play=fake)


def test_runs_are_bounded() -> None:
    told: list[str] = []
    found = shrink(1, MANY, runs_max=5, play=fake, report=told.append)
    assert found.runs == 5
    assert not found.complete
    assert not found.result.ok
    assert told


def test_a_real_seed_shrinks_to_few_entries_and_no_fault() -> None:
    plan = tiny_plan(strike("kill", 1.0), strike("pause", 2.0), entries=40, complains=True)
    found = shrink(1, plan, runs_max=60)
    assert found.plan.faults == ()
    assert found.plan.load == TinyLoad(6, complains=True)
    assert plan_from_json(found.plan.to_json()) == found.plan
