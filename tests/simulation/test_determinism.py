"""One seed is one history: the same trace digest again, in another process, and under other hash seeds; for each play."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from triplicate.sim import PLAYS, play_of, run_seed

SEEDS = {play: next(seed for seed in range(1, 100) if play_of(seed) == play) for play in PLAYS}
HASH_SEEDS = ("0", "4711")


def begin_elsewhere(seed: int, hash_seed: str) -> subprocess.Popen[str]:
    """A process of its own that prints the digest."""
    program = f"from triplicate.sim import run_seed; print(run_seed({seed}).digest)"
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("play", list(PLAYS))
def test_a_seed_gives_the_same_digest_again_and_in_other_processes_under_other_hash_seeds(play: str) -> None:
    seed = SEEDS[play]
    others = [begin_elsewhere(seed, hash_seed) for hash_seed in HASH_SEEDS]
    try:
        here = [run_seed(seed).digest for _ in range(2)]
        there = [other.communicate(timeout=90)[0].strip() for other in others]
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert here + there == [here[0]] * 4


def test_different_seeds_give_different_digests() -> None:
    assert len({run_seed(seed).digest for seed in (11, 12)}) == 2
