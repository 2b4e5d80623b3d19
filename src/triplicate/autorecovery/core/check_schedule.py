"""When a periodic check of the auditor is due, by the time of its last run in the metadata. Source: BookKeeper `Auditor`."""

from __future__ import annotations

FIRST_CHECK_AFTER_S = 300.0
"""A check that never ran runs this time after the auditor's election, when a new cluster has started."""
CLOCKS_APART_S = 60.0
"""A time of a last run that lies further in the future is from a clock that was wrong."""


def is_in_the_future(now_ms: int, last_ms: int) -> bool:
    """Whether the time of a last run was written by a clock that was far ahead. A check would not be due until the time is past."""
    return last_ms - now_ms > 1000 * CLOCKS_APART_S


def seconds_until_check(now_ms: int, last_ms: int | None, interval_s: int, elected_for_s: float) -> float | None:
    """Seconds until a check is due; 0 if it is due now, None if it is never due.

    Args:
        now_ms: the present time, in ms since the epoch.
        last_ms: the time of the last run; None if it never ran. A time in the future counts as the present time.
        interval_s: time between two runs; 0 for none.
        elected_for_s: time since the auditor's election.
    """
    if interval_s <= 0:
        return None
    if last_ms is None:
        return max(0.0, FIRST_CHECK_AFTER_S - elected_for_s)
    return max(0.0, interval_s - max(0, now_ms - last_ms) / 1000)
