"""Whether the writer of an open ledger is gone, so that the ledger may be fenced.

BookKeeper has no register of writers: a writer is seen only by what it does. A living writer whose bookie is lost stores further
entries on the other bookies, or replaces the lost bookie in the metadata. The writer is held to be gone if neither is seen over a
whole grace period. An idle writer cannot be distinguished from a dead one and is fenced as well; it learns of that at its next append.

Source: BookKeeper `ReplicationWorker`, which fences after the grace period without looking for such signs.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from triplicate.ledger import EnsembleSegment, LedgerState


@dataclass(frozen=True, slots=True)
class OpenLedgerView:
    """The end of a ledger that is not closed, at one time.

    Args:
        segment: the last segment in the metadata.
        last_entry_id: the greatest entry that any bookie of the segment has; -1 if none has any.
        seen_at: seconds of a monotonic clock, at the end of the reads.
        is_conclusive: whether enough bookies answered: no entry can have reached its ack quorum unseen.
    """

    state: LedgerState
    segment: EnsembleSegment
    last_entry_id: int
    seen_at: float
    is_conclusive: bool = True


class WriterPresence(enum.Enum):
    """The state of the writer of an open ledger, as far as it is known."""

    UNKNOWN = "unknown"
    """The grace period is not over, or too few bookies answered: entries of the writer may have been missed."""
    ALIVE = "alive"
    """The writer stored entries or changed the ensemble during the grace period."""
    GONE = "gone"
    """The ledger did not change over the whole grace period, or a recovery has fenced it already."""


def writer_presence(first: OpenLedgerView, present: OpenLedgerView, grace_s: float) -> WriterPresence:
    """Compare the first view of a ledger with the present one.

    Args:
        grace_s: the grace period, in seconds.
    """
    if present.state is LedgerState.IN_RECOVERY:
        # Several recoveries of one ledger end at the same entry, and the writer cannot write any more.
        return WriterPresence.GONE
    if present.segment != first.segment or present.last_entry_id > first.last_entry_id:
        return WriterPresence.ALIVE
    is_over = present.seen_at - first.seen_at >= grace_s
    return WriterPresence.GONE if is_over and present.is_conclusive else WriterPresence.UNKNOWN
