"""One seed is one history: the same trace digest again, in another process, and under another hash seed."""

from __future__ import annotations

import os
import subprocess
import sys

from triplicate.sim import run_seed

SEEDS = (3, 11)


def digest_elsewhere(seed: int, hash_seed: str) -> str:
    """The digest that a process of its own finds."""
    program = f"from triplicate.sim import run_seed; print(run_seed({seed}).digest)"
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return answer.stdout.strip()


def test_a_seed_gives_one_digest_twice_in_this_process() -> None:
    for seed in SEEDS:
        assert run_seed(seed).digest == run_seed(seed).digest


def test_a_seed_gives_the_same_digest_in_other_processes_under_other_hash_seeds() -> None:
    for seed in SEEDS:
        here = run_seed(seed).digest
        assert [digest_elsewhere(seed, hash_seed) for hash_seed in ("0", "4711")] == [here, here]


def test_different_seeds_give_different_digests() -> None:
    assert len({run_seed(seed).digest for seed in SEEDS}) == len(SEEDS)
