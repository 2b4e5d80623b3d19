"""Seeds of all workloads: no violation, every fault strikes, every checker has something to decide.

``SIM_SEEDS=300 pytest tests/simulation/test_seeds.py`` runs as many as `make check-deep` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pytest

from triplicate_simulator import Summary, run

FEW = (*range(1, 51), 60, 69, 76, 79, 81)
"""The seeds of every run: the last five have what is rare among the others. Where a change leaves a gap, another seed fills it."""
SEEDS: Sequence[int] = range(1, 1 + int(os.environ["SIM_SEEDS"])) if "SIM_SEEDS" in os.environ else FEW
JOBS = 2 if "SIM_SEEDS" in os.environ else 1
"""The part of `make test` has neighbours."""


@pytest.fixture(scope="module")
def played() -> Iterator[Summary]:
    summary = run(SEEDS, jobs=JOBS)
    yield summary
    summary.results.clear()


def test_no_seed_shows_a_violation(played: Summary) -> None:
    assert [result.seed for result in played.results] == list(SEEDS)
    assert not played.failed, "\n".join(str(result) for result in played.failed[:10])


def test_every_fault_occurs_and_every_checker_and_count_has_input(played: Summary) -> None:
    assert played.gaps() == []


def test_seeds_have_the_promised_size(played: Summary) -> None:
    """At least three hundred acknowledged entries in each seed of ledgers, and a simulated minute in every seed."""
    ledgers = [result for result in played.results if result.workload == "ledgers"]
    assert ledgers
    assert [str(result) for result in ledgers if result.counts["acknowledged"] < 300] == []
    assert all(result.virtual_s >= 60 for result in played.results)
    assert played.totals()["ensemble_changes"] > 0
