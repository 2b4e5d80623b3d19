"""Shrinking: the faults and the load that a violation needs are left, the same checker reports, and runs are bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.simulator.tiny import TinyLoad, tiny_plan
from triplicate_simulator import Fault, NothingToShrink, Plan, Result, plan_from_json, shrink
from triplicate_simulator.cluster.plan import BookieSetup
from triplicate_simulator.runner.shrink import ViolationKind, finding_of

pytestmark = pytest.mark.usefixtures("tiny")

NEEDED = ("crash", "clock")


def strike(kind: str, at_s: float) -> Fault:
    return Fault(kind, at_s, "bookie-1", lasts_s=2.0)


MANY = tiny_plan(
    *(strike(kind, 0.5 * index) for index, kind in enumerate(["kill", "crash", "pause", "reset", "clock", "stop", "kill"])), entries=64
)


def fake(seed: int, plan: Plan) -> Result:
    """Fails as long as both needed faults are there and ten entries are written; something else is found where no pause is left."""
    violations = []
    kinds = [found.kind for found in plan.faults]
    if all(kind in kinds for kind in NEEDED) and plan.load.entries >= 10:
        violations.append("nothing_is_found: what is looked for")
    if "pause" not in kinds:
        violations.append("failed: something else")
    return Result(seed, plan.workload, "", 1.0, {}, {}, [], violations)


def test_only_what_the_violation_needs_is_left() -> None:
    found = shrink(1, MANY, run_plan=fake)
    assert tuple(left.kind for left in found.plan.faults) == NEEDED
    assert found.plan.load.entries == 10
    assert found.plan.duration_s <= 2.5
    assert all(left.lasts_s <= 0.2 for left in found.plan.faults)
    assert found.followed == ViolationKind("nothing_is_found")
    assert found.originals == (ViolationKind("nothing_is_found"),)
    assert found.violation == "nothing_is_found: what is looked for"
    assert found.complete
    assert found.runs < 120


def test_bookies_are_as_plain_as_the_violation_allows() -> None:
    def fails_with_two_directories(seed: int, plan: Plan) -> Result:
        violations = ["nothing_is_found: it needs two"] if plan.storage.ledger_directories == 2 else []
        return Result(seed, plan.workload, "", 1.0, {}, {}, [], violations)

    unusual = BookieSetup(ledger_directories=2, journal_directories=2, trash_period_s=10.0)
    found = shrink(1, replace(MANY, storage=unusual), run_plan=fails_with_two_directories)
    assert found.plan.storage == BookieSetup(ledger_directories=2)


def both(seed: int, plan: Plan) -> Result:
    """A kill breaks something, and by it a clock is seen to be wrong as well; without the kill it is only seen where a pause is too."""
    kinds = [found.kind for found in plan.faults]
    violations = ["nothing_is_found: a clock is wrong"] if "clock" in kinds and ("kill" in kinds or "pause" in kinds) else []
    if "kill" in kinds:
        violations.append("failed: KeyError in append: 17")
    if not plan.faults:
        violations.append("failed: ValueError in append: no faults")
    return Result(seed, plan.workload, "", 1.0, {}, {}, [], violations)


def test_each_of_several_findings_is_followed_and_the_rest_is_reported() -> None:
    """The first one alone was followed, so a plan in which only the second was left did not count as failing."""
    found = shrink(1, MANY, run_plan=both)
    assert [left.kind for left in found.plan.faults] == ["kill"], "an error of another kind is no finding of the whole plan's"
    assert found.originals == (ViolationKind("nothing_is_found"), ViolationKind("failed", "KeyError in append"))
    assert found.followed == ViolationKind("failed", "KeyError in append")
    assert found.violation == "failed: KeyError in append: 17"


@pytest.mark.parametrize(
    ("violation", "finding"),
    [
        ("acknowledged_in_order: entry 8 of ledger 3", "acknowledged_in_order"),
        ("no progress: writer-1 is not done 120 s after faults have stopped", "progress (no progress)"),
        ("stuck: nothing can happen", "progress (stuck)"),
        ("leak: task writer-2: append", "leaks (task writer-N)"),
        ("failed: AssertionError in proof: 7 > 6", "failed (AssertionError in proof)"),
        ("ledger 7 was deleted at 3.123456, which was not requested", "failed (ledger N was deleted)"),
        ("bookie: bookie-2 does not start: x", "bookies (bookie-N does not start)"),
    ],
)
def test_a_finding_is_identified_by_its_checker_and_its_text(violation: str, finding: str) -> None:
    assert str(finding_of(violation)) == finding


def test_a_plan_without_a_violation_is_nothing_to_shrink() -> None:
    with pytest.raises(NothingToShrink):
        shrink(1, replace(MANY, faults=(strike("pause", 1.0),)), run_plan=fake)


def test_runs_are_bounded() -> None:
    told: list[str] = []
    found = shrink(1, MANY, runs_max=5, run_plan=fake, report=told.append)
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
