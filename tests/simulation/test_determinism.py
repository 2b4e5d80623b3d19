"""One seed is one history: the same trace digest in another process, after other seeds, and under other hash seeds; for each workload."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest

from tests.simulation.shared_runs import SharedRuns
from triplicate_simulator import WORKLOADS, workload_of

SEEDS = {"ledgers": 10, "logs": 43, "databases": 47, "repairs": 29, "stores": 8}
"""One for each workload, and all among the seeds that `test_seeds.py` judges."""
ANOTHER = 20
HASH_SEED = "4711"
PROGRAM = "from triplicate_simulator import run_seed; print(*[run_seed(seed).digest for seed in {seeds}])"


def begin_elsewhere(seeds: Sequence[int], hash_seed: str) -> subprocess.Popen[str]:
    """A process of its own that prints the digests."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(seeds=list(seeds))],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def digests(runs: SharedRuns) -> Iterator[list[dict[str, str]]]:
    """By workload: here, and in another process with a hash seed of its own."""
    other = begin_elsewhere(list(SEEDS.values()), HASH_SEED)
    try:
        # In another order than elsewhere: what ran before in the same process must leave no trace.
        here = {workload: runs.result_of(seed).digest for workload, seed in reversed(SEEDS.items())}
        there = dict(zip(SEEDS, other.communicate(timeout=120)[0].split(), strict=True))
        yield [here, there]
    finally:
        other.kill()
        other.wait()


def test_every_workload_has_a_seed() -> None:
    assert {workload: workload_of(seed) for workload, seed in SEEDS.items()} == {workload: workload for workload in WORKLOADS}


@pytest.mark.parametrize("workload", list(SEEDS))
def test_a_seed_gives_the_same_digest_in_two_processes_under_different_hash_seeds(workload: str, digests: list[dict[str, str]]) -> None:
    assert len({found[workload] for found in digests}) == 1, [found[workload] for found in digests]


def test_different_seeds_give_different_digests(digests: list[dict[str, str]], runs: SharedRuns) -> None:
    assert len(set(digests[0].values())) == len(SEEDS)
    assert runs.result_of(ANOTHER).digest != digests[0]["ledgers"]
