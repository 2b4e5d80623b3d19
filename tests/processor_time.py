"""Bounds of processor time that hold on a slow or busy machine: they grow with the time of a fixed piece of work."""

from __future__ import annotations

import time

REFERENCE_S = 0.004
"""The processor time of `_reference` on the machine on which the bounds were chosen, without other load."""


def within(measured_s: float, bound_s: float) -> bool:
    """Whether a processor time is within a bound, or within it at the present speed of this machine.

    Other load makes the same instructions take several times as long, as it shares the processor's caches and pipelines.
    """
    return measured_s < bound_s or measured_s < bound_s * max(_reference() for _ in range(20)) / REFERENCE_S


def _reference() -> float:
    began_s = time.thread_time()
    text = " ".join(map(str, range(20_000)))
    sum(map(int, text.split()))
    return time.thread_time() - began_s
