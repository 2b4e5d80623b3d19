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

KEPT_S = 86_400.0
"""How long after its grace period a view is kept without another look, in seconds: longer than any repair waits for its turn."""


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


@dataclass(frozen=True, slots=True)
class _FirstView:
    marked_ms: int
    first: OpenLedgerView
    looked_at: float


class FirstViews:
    """The views with which grace periods began, of one worker.

    A view counts only for the mark under which it was seen. If that mark was deleted, nothing was lost for a while, and the next loss has a
    grace period of its own. Ledgers that other workers finished are never looked at again, so views are dropped after a time.

    Args:
        grace_s: the grace period, in seconds.
    """

    def __init__(self, grace_s: float) -> None:
        self._kept_s = grace_s + KEPT_S
        self._views: dict[int, _FirstView] = {}
        """In the order of the last looks."""

    def __len__(self) -> int:
        return len(self._views)

    def first(self, ledger_id: int, marked_ms: int, present: OpenLedgerView) -> OpenLedgerView:
        """The view with which the grace period began; the present one if it begins now.

        Args:
            marked_ms: when the ledger's present mark was made, by the store's clock.
        """
        kept = self._views.get(ledger_id)
        view = kept.first if kept is not None and kept.marked_ms == marked_ms else present
        self._keep(ledger_id, _FirstView(marked_ms, view, present.seen_at))
        return view

    def renew(self, ledger_id: int, marked_ms: int, present: OpenLedgerView) -> None:
        """Begin the grace period again."""
        self._keep(ledger_id, _FirstView(marked_ms, present, present.seen_at))

    def _keep(self, ledger_id: int, kept: _FirstView) -> None:
        self._views.pop(ledger_id, None)
        self._views[ledger_id] = kept
        while kept.looked_at - self._views[oldest := next(iter(self._views))].looked_at > self._kept_s:
            del self._views[oldest]

    def drop(self, ledger_id: int) -> None:
        """End the grace period of a ledger. Idempotent."""
        self._views.pop(ledger_id, None)

    def seen_at(self, ledger_id: int) -> float | None:
        """When the grace period began, in seconds of a monotonic clock; None if none runs."""
        found = self._views.get(ledger_id)
        return None if found is None else found.first.seen_at


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
