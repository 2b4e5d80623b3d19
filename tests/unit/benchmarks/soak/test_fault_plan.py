"""The plan of a soak run: repeatable, within its time, every kind in each round, and one place whose process lives on."""

from __future__ import annotations

from itertools import pairwise

import pytest

from benchmarks.soak.fault_plan import CALM_S, DURATIONS_S, ENDS_PROCESS, NODE_KINDS, FaultKind, PlannedFault, make_plan

PLACES = range(1, 6)


def plan(seed: int, seconds: float = 600.0) -> tuple[PlannedFault, ...]:
    return make_plan(seed, seconds, PLACES, small_disk=2, observed=1)


def test_a_seed_gives_the_same_plan_and_another_seed_another() -> None:
    assert plan(7) == plan(7)
    assert plan(7) != plan(8)


def test_a_shorter_run_has_the_first_faults_of_a_longer_one() -> None:
    short = plan(7, 60.0)
    assert short == plan(7)[: len(short)]


@pytest.mark.parametrize("seed", range(20))
def test_ten_minutes_have_every_kind_at_least_three_times(seed: int) -> None:
    kinds = [fault.kind for fault in plan(seed)]
    assert all(kinds.count(kind) >= 3 for kind in FaultKind)


@pytest.mark.parametrize("seed", range(20))
def test_faults_do_not_overlap_and_end_in_time(seed: int) -> None:
    for fault, following in pairwise(plan(seed)):
        assert following.at_s - (fault.at_s + fault.lasts_s) >= CALM_S[0]
    for fault in plan(seed):
        assert DURATIONS_S[fault.kind][0] <= fault.lasts_s <= DURATIONS_S[fault.kind][1]
        assert fault.at_s + fault.lasts_s <= 600.0


@pytest.mark.parametrize("seed", range(20))
def test_places_of_faults(seed: int) -> None:
    for fault in plan(seed):
        if fault.kind in NODE_KINDS:
            assert fault.place == 0
        else:
            assert fault.place in PLACES
        if fault.kind is FaultKind.FULL:
            assert fault.place == 2
        if fault.kind in ENDS_PROCESS:
            assert fault.place != 1
