"""The share of each period in which background work may run."""

from __future__ import annotations


def seconds_until_open(elapsed_s: float, share: float, period_s: float) -> float:
    """Seconds until work may go on; 0 if it may now.

    Args:
        elapsed_s: time since the first period began.
        share: share of each period, from its begin, in which work may run; above 0 and at most 1.
    """
    phase_s = elapsed_s % period_s
    return 0.0 if phase_s < share * period_s else period_s - phase_s
