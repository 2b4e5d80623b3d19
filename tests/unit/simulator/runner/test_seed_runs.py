"""Many seeds: order, totals, and what a range has left out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.simulator.tiny import TinyPlay
from triplicate_simulator import FAULT_KINDS, WORKLOADS, Result, Summary, Verdict, run


def result(seed: int, play: str = "ledgers", **changes: Any) -> Result:
    values = {"counts": {"acknowledged": 5}, "struck": {"crash": 1}, "verdicts": [], "violations": []}
    return Result(seed, play, "digest", 10.0, **{**values, **changes})


@pytest.mark.usefixtures("tiny")
def test_seeds_are_reported_in_their_order_with_any_number_of_jobs() -> None:
    seen: list[int] = []
    summary = run([4, 2, 5], workload="tiny", report=lambda found: seen.append(found.seed))
    assert seen == [4, 2, 5] == [found.seed for found in summary.results]
    assert not summary.failed
    assert all(found.facts == [] == found.events for found in summary.results)


@pytest.mark.deep
def test_two_processes_give_what_one_gives() -> None:
    here = {found.seed: found.digest for found in run([11, 43], jobs=1).results}
    there = {found.seed: found.digest for found in run([11, 43], jobs=2).results}
    assert here == there


def test_totals_are_added_up_by_workload() -> None:
    summary = Summary()
    for seed in (1, 2):
        summary.add(result(seed, counts={"acknowledged": 5, "ensemble_changes": seed}))
    summary.add(result(3, "logs", counts={"acknowledged": 1}))
    assert summary.seeds() == {"ledgers": 2, "logs": 1}
    assert summary.counts("ledgers")["ensemble_changes"] == 3
    assert summary.counts("logs")["acknowledged"] == 1
    assert summary.totals()["acknowledged"] == 11
    assert summary.struck()["crash"] == 3
    assert summary.virtual_s() == 30.0


def test_checkers_that_decide_or_give_up_are_counted() -> None:
    summary = Summary()
    name = next(iter(WORKLOADS["ledgers"].checkers))
    summary.add(result(1, verdicts=[Verdict(name, decided=3, undecided=1)]))
    summary.add(result(2, verdicts=[Verdict(name, decided=4)]))
    assert summary.decided()[name] == 7
    assert summary.undecided() == {name: 1}


def test_a_search_with_a_bound_is_among_the_totals_although_it_never_gave_up() -> None:
    """Only who had given up was named, so nobody saw that somebody could."""
    summary = Summary()
    summary.add(result(1))
    assert summary.undecided() == {}
    summary.add(result(7, "databases", verdicts=[Verdict("registers_are_linearizable", decided=3)]))
    assert summary.undecided() == {"registers_are_linearizable": 0}


@pytest.mark.usefixtures("tiny")
def test_what_never_happened_is_a_gap() -> None:
    summary = Summary()
    summary.add(result(1, "tiny", struck=dict.fromkeys(FAULT_KINDS, 1), verdicts=[Verdict("nothing_is_found", decided=1)]))
    assert summary.gaps() == ["no seed of tiny has any never"]
    summary.results[0].struck.pop("partition")
    summary.results[0].verdicts = []
    gaps = summary.gaps()
    assert "fault partition never struck" in gaps
    assert "checker nothing_is_found never had anything to decide" in gaps
    assert len(gaps) == 3
    assert TinyPlay.counted == ("acknowledged", "never")


def test_violations_are_failures() -> None:
    summary = Summary()
    summary.add(result(1))
    summary.add(result(2, violations=["failed: something"]))
    assert [found.seed for found in summary.failed] == [2]
    assert "VIOLATED" in str(summary.failed[0])
