"""The histogram of recent latencies."""

from __future__ import annotations

import random
from math import ceil

import pytest

from triplicate.ledger.read_latency import BUCKETS, READS_KEPT, RecentLatencies


def recorded(latencies_s: list[float]) -> RecentLatencies:
    recent = RecentLatencies()
    for latency_s in latencies_s:
        recent.record(latency_s)
    return recent


@pytest.mark.parametrize("quantile", [0.5, 0.95, 0.99])
def test_a_quantile_is_exact_to_a_bucket(quantile: float) -> None:
    rng = random.Random(7)
    latencies_s = sorted(rng.lognormvariate(-6, 1) for _ in range(400))
    exact_s = latencies_s[ceil(quantile * len(latencies_s)) - 1]
    assert exact_s / 1.2 <= recorded(latencies_s).quantile_s(quantile) <= exact_s * 1.2


def test_without_reads_the_quantile_is_zero() -> None:
    assert RecentLatencies().quantile_s(0.95) == 0


def test_old_reads_are_forgotten() -> None:
    recent = recorded([1.0] * 2000 + [0.001] * 4000)
    assert recent.quantile_s(0.95) < 0.002
    assert recent.reads <= READS_KEPT


@pytest.mark.parametrize("latency_s", [0.0, -1.0, 1e-9, 1e9])
def test_latencies_beyond_the_buckets_count_in_the_nearest(latency_s: float) -> None:
    recent = recorded([latency_s])
    assert recent.reads == 1
    assert len(recent._counts) == BUCKETS
