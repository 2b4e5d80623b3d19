"""Percentiles of latencies."""

from __future__ import annotations

from benchmarks.driving import percentile

NS_PER_MS = 1e6


def summary(latencies_ns: list[int]) -> dict[str, float]:
    """The count, and p50, p99, p99.9 and maximum in milliseconds if the count is not zero; sorts its argument.

    The Java client computes the same (``Latencies.java``).
    """
    latencies_ns.sort()
    figures: dict[str, float] = {"count": len(latencies_ns)}
    if latencies_ns:
        figures["p50_ms"] = percentile(latencies_ns, 0.5) / NS_PER_MS
        figures["p99_ms"] = percentile(latencies_ns, 0.99) / NS_PER_MS
        figures["p999_ms"] = percentile(latencies_ns, 0.999) / NS_PER_MS
        figures["max_ms"] = latencies_ns[-1] / NS_PER_MS
    return figures
