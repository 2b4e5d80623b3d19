"""Runs of staging ledgers to join are in order, do not overlap, and keep their limits."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.log.core.join_plan import JOIN_BYTES_MAXIMUM, JOIN_LEAST, runs_to_join

MIB = 1024 * 1024


@given(
    sizes=st.lists(st.sampled_from([1, 100, 5000, MIB, 7 * MIB, 8 * MIB, 40 * MIB]), max_size=80),
    target=st.sampled_from([0, 1000, 16 * MIB]),
)
@settings(max_examples=examples(300), deadline=None)
def test_runs_are_of_small_neighbours_and_bounded(sizes: list[int], target: int) -> None:
    runs = runs_to_join(sizes, target)
    assert [run.start for run in runs] == sorted(run.start for run in runs)
    assert all(left.stop <= right.start for left, right in pairwise(runs))
    for run in runs:
        inside = sizes[run.start : run.stop]
        assert len(inside) >= JOIN_LEAST
        assert max(inside) * 2 < target
        assert sum(inside) <= target
    assert sum(size for run in runs for size in sizes[run.start : run.stop]) <= JOIN_BYTES_MAXIMUM


def test_two_hundred_tiny_ledgers_become_one() -> None:
    assert runs_to_join([500] * 200, 16 * MIB) == [range(200)]
    assert runs_to_join([500] * (JOIN_LEAST - 1), 16 * MIB) == []
    # Of more than may be copied, those with the smallest ledgers.
    assert runs_to_join([*[2 * MIB] * 80, *[10] * 50], 16 * MIB)[-1] == range(80, 130)


def test_joining_stops_at_the_limit_of_copied_bytes() -> None:
    assert runs_to_join([MIB] * 100, 1024 * MIB) == [range(64)]
    assert runs_to_join([500] * 200, 1024 * MIB) == [range(200)]
