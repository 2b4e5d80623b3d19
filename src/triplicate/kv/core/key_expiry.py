"""When a key is expired. Pure.

A deadline is compared with the time of the log, which the entries of the leader record and which never goes back. A copy that has applied
the same entries therefore shows the same keys, and does not use its own clock. The clock of a leader may have passed a deadline that the
log's time has not passed. Then the leader logs the expiry first, and answers afterwards. So no later leader with a slower clock shows the
key again.
"""

from __future__ import annotations

from triplicate.kv.core.operations import NEVER, Expiry


def is_expired(deadline_ms: int, time_ms: int) -> bool:
    """Whether a key with this deadline is expired at a time of the log."""
    return deadline_ms != NEVER and deadline_ms <= time_ms


def next_time_ms(logged_ms: int, wall_ms: int) -> int:
    """The time of the next entry.

    Args:
        logged_ms: time of the entry before. wall_ms: the leader's clock.
    """
    return max(logged_ms, wall_ms)


def new_deadline_ms(expiry: Expiry, time_ms: int, old_ms: int) -> int:
    """The deadline that a change at a time of the log sets.

    Args:
        old_ms: the deadline before; 0 for a key without one, and for an absent key.
    """
    if expiry.keeps:
        return old_ms
    if expiry.at_ms is not None:
        return max(expiry.at_ms, 1)  # 0 stands for no deadline; every time before the present is equal.
    return NEVER if expiry.after_ms is None else time_ms + expiry.after_ms
