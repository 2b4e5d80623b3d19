"""Plans: drawn from a seed alone, written as JSON and read again, refused when they are none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from triplicate_simulator import FAULT_KINDS, WORKLOADS, Fault, Plan, plan_from_json, plan_of, workload_of

SEEDS = range(1, 121)


@pytest.mark.parametrize("play", list(WORKLOADS))
def test_a_plan_is_the_same_after_writing_and_reading(play: str) -> None:
    for seed in (1, 2, 3):
        plan = plan_of(seed, play)
        assert plan_from_json(plan.to_json()) == plan


def test_a_seed_draws_the_same_plan_again() -> None:
    for seed in (1, 3, 7):
        assert plan_of(seed) == plan_of(seed)


def test_every_tenth_seed_has_stores_logs_databases_and_repairs_each() -> None:
    plays = [workload_of(seed) for seed in range(1, 11)]
    expected = {3: "logs", 7: "databases", 8: "stores", 9: "repairs"}
    assert plays == [expected.get(seed % 10, "ledgers") for seed in range(1, 11)]
    assert [plan_of(seed).workload for seed in range(1, 11)] == plays


def test_every_seed_has_three_faults_and_all_together_every_kind() -> None:
    kinds: dict[str, int] = {}
    for seed in SEEDS:
        plan = plan_of(seed)
        assert len(plan.faults) >= 3
        assert all(0.0 < strike.at_s < plan.duration_s for strike in plan.faults)
        for strike in plan.faults:
            kinds[strike.kind] = kinds.get(strike.kind, 0) + 1
    assert set(kinds) == set(FAULT_KINDS)


def test_seeds_differ_in_the_kinds_that_are_on() -> None:
    assert len({frozenset(strike.kind for strike in plan_of(seed).faults) for seed in SEEDS}) > len(SEEDS) // 2


def test_no_more_bookies_lose_what_they_had_than_the_ack_quorum_can_spare() -> None:
    for seed in SEEDS:
        plan = plan_of(seed)
        destroyed = {strike.target for strike in plan.faults if strike.kind in ("bit_rot", "directory_rot", "wipe")}
        assert len(destroyed) <= WORKLOADS[plan.workload].losses_max(plan.load)


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[]",
        "{}",
        '{"v": 2, "play": "ledgers"}',
        '{"v": 1, "play": "nonsense"}',
        '{"v": 1, "play": "ledgers"}',
    ],
)
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"plan|JSON"):
        plan_from_json(text)


def test_a_plan_with_an_unknown_fault_is_refused_by_its_name() -> None:
    found = json.loads(replace(plan_of(1), faults=(Fault("crash", 1.0, "bookie-1"),)).to_json())
    found["faults"][0]["kind"] = "earthquake"
    with pytest.raises(ValueError, match="earthquake"):
        plan_from_json(json.dumps(found))


def test_an_applied_fault_is_one_line() -> None:
    strike = Fault("link_slow", 1.5, "bookie-1", "writer-1", 2.0, {"factor": 5.0})
    assert str(strike) == "link_slow bookie-1 -> writer-1 at 1.500 s for 2.000 s factor=5.0"


def test_a_plan_of_a_play_by_name_is_another_than_the_seeds_own() -> None:
    assert isinstance(plan_of(1, "logs"), Plan)
    assert plan_of(1, "logs").workload == "logs"
