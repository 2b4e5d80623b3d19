"""The delay and the budget of hedged reads."""

from __future__ import annotations

import random

import pytest

from triplicate.ledger.hedging import (
    BOOKIES_MAXIMUM,
    BURST_READS,
    LEAST_DELAY_S,
    HedgeBudget,
    HedgeDelays,
    ReadKind,
    kind_of_batch,
)


def test_the_delay_is_the_limit_until_enough_reads_were_measured() -> None:
    delays = HedgeDelays(0.5, 0.95)
    for _ in range(31):
        delays.record("a", ReadKind.SINGLE, 0.01)
        assert delays.delay_s(ReadKind.SINGLE) == 0.5
    delays.record("a", ReadKind.SINGLE, 0.01)
    assert 0.01 <= delays.delay_s(ReadKind.SINGLE) <= 0.012
    assert delays.delay_s(ReadKind.LONG_BATCH) == 0.5, "other reads have latencies of their own"


def test_one_slow_bookie_does_not_raise_the_delay() -> None:
    delays = HedgeDelays(0.5, 0.95)
    for _ in range(200):
        for bookie_id, latency_s in (("a", 0.2), ("b", 0.004), ("c", 0.005)):
            delays.record(bookie_id, ReadKind.SINGLE, latency_s)
    assert 0.004 <= delays.delay_s(ReadKind.SINGLE) <= 0.006


def test_of_two_bookies_the_quicker_one_decides() -> None:
    delays = HedgeDelays(0.5, 0.95)
    for _ in range(200):
        delays.record("a", ReadKind.SINGLE, 0.2)
        delays.record("b", ReadKind.SINGLE, 0.004)
    assert delays.delay_s(ReadKind.SINGLE) <= 0.005


@pytest.mark.parametrize(("latency_s", "expected_s"), [(0.00001, LEAST_DELAY_S), (30.0, 0.5)])
def test_the_delay_has_bounds(latency_s: float, expected_s: float) -> None:
    delays = HedgeDelays(0.5, 0.95)
    for _ in range(100):
        delays.record("a", ReadKind.SINGLE, latency_s)
    assert delays.delay_s(ReadKind.SINGLE) == expected_s


@pytest.mark.parametrize(("limit_s", "quantile"), [(0.5, 0.0), (float("inf"), 0.95)])
def test_without_a_quantile_or_a_limit_nothing_is_measured(limit_s: float, quantile: float) -> None:
    delays = HedgeDelays(limit_s, quantile)
    for _ in range(100):
        delays.record("a", ReadKind.SINGLE, 0.01)
    assert delays.delay_s(ReadKind.SINGLE) == limit_s


def test_the_bookies_whose_latencies_are_kept_are_bounded() -> None:
    delays = HedgeDelays(0.5, 0.95)
    for number in range(2 * BOOKIES_MAXIMUM):
        delays.record(f"bookie {number}", ReadKind.SINGLE, 0.01)
    assert len(delays._latencies[ReadKind.SINGLE]) == BOOKIES_MAXIMUM


def test_batches_are_short_or_long() -> None:
    assert [kind_of_batch(count) for count in (1, 32, 33)] == [ReadKind.SHORT_BATCH, ReadKind.SHORT_BATCH, ReadKind.LONG_BATCH]


@pytest.mark.parametrize("seed", range(20))
def test_additional_reads_are_a_share_of_the_reads_in_any_window(seed: int) -> None:
    """The prefix sums of additional reads minus the share of reads rise by no more than the burst between any two moments."""
    rng, share = random.Random(seed), 0.05
    budget = HedgeBudget(share)
    extra, lowest = 0, 0.0
    for _ in range(5000):
        budget.reads += rng.choice((0, 1, 1, 5))
        extra += budget.try_spend() if rng.random() < 0.5 else 0
        surplus = extra - share * budget.reads
        lowest = min(lowest, surplus)
        assert surplus - lowest <= BURST_READS + 1e-6
    assert extra >= share * budget.reads - 1


def test_reads_that_cannot_wait_are_paid_later() -> None:
    budget = HedgeBudget(0.05)
    for _ in range(1000):
        budget.spend()
    assert not budget.try_spend()
    budget.reads += int(BURST_READS / 0.05) + 10
    assert not budget.try_spend(), "the debt is paid first"
    budget.reads += 30
    assert budget.try_spend()


def test_a_share_of_zero_allows_nothing() -> None:
    budget = HedgeBudget(0.0)
    budget.reads += 1000
    assert not budget.try_spend()
