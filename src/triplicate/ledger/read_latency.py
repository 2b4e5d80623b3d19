"""How long recent reads of one bookie took, as a histogram that forgets. Pure: the caller measures.

The counts of a histogram are halved when it is full, so that recent reads weigh most and memory is fixed.
"""

from __future__ import annotations

from math import exp2, log2

LEAST_S = 0.00005
"""Upper bound of the first bucket, in seconds."""
BUCKETS_PER_DOUBLING = 4
"""A quantile is exact to a factor of 2 ** (1 / 4), or 19 %."""
BUCKETS = 84
"""The last bucket ends at 89 seconds, and has everything above."""
READS_KEPT = 512.0
"""The counts are halved when they add up to this number."""


class RecentLatencies:
    """The latencies of a bookie's recent reads, in `BUCKETS` counters."""

    __slots__ = ("_counts", "_total")

    def __init__(self) -> None:
        self._counts = [0.0] * BUCKETS
        self._total = 0.0

    @property
    def reads(self) -> float:
        """The number of reads, of which older ones count less."""
        return self._total

    def record(self, latency_s: float) -> None:
        """Count one read."""
        bucket = int(log2(latency_s / LEAST_S) * BUCKETS_PER_DOUBLING) + 1 if latency_s > LEAST_S else 0
        self._counts[bucket if bucket < BUCKETS else BUCKETS - 1] += 1.0
        self._total += 1.0
        if self._total >= READS_KEPT:
            self._counts = [count / 2 for count in self._counts]
            self._total /= 2

    def quantile_s(self, quantile: float) -> float:
        """The latency that this share of the reads did not exceed, rounded up to the bound of a bucket; 0 without any read."""
        wanted = quantile * self._total
        seen = 0.0
        for bucket, count in enumerate(self._counts):
            seen += count
            if count and seen >= wanted:
                return LEAST_S * exp2(bucket / BUCKETS_PER_DOUBLING)
        return 0.0
