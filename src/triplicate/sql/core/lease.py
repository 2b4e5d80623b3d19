"""The lease under which a leader answers reads on its own.

An append that an ack quorum acknowledged was stored by a bookie that no successor had fenced yet, and recovery acknowledges none that was
sent after a successor's take-over. So no take-over was complete when the last acknowledged append was *sent*, and a successor that
waits for the length of the lease after its take-over neither acknowledges nor answers anything before the lease has ended.
Clocks are trusted for their rate only: each node measures spans of time on its own.
"""

from __future__ import annotations


class Lease:
    """Until when one leader may answer. Times are seconds of its own clock, which counts suspended time.

    Args:
        length_s: the lease of the database; 0 for none: it never holds.
    """

    def __init__(self, length_s: float) -> None:
        self._length_s = length_s
        self._ends = self._last_sent = float("-inf")

    def sending(self, now: float) -> None:
        """An append is about to be sent."""
        self._last_sent = now

    def acknowledged(self, sent_at: float) -> None:
        """An append was acknowledged that was sent at this time or later."""
        self._ends = max(self._ends, sent_at + self._length_s)

    def holds(self, now: float) -> bool:
        return now < self._ends

    def renewal_due(self, now: float) -> bool:
        """Whether a reader should have an append sent, so that the lease goes on: none was sent for a third of it."""
        return now - self._last_sent >= self._length_s / 3


def wait_s(length_s: float, rate_error: float) -> float:
    """How long a successor waits on its own clock, so that a lease of this length has ended on its holder's.

    Args:
        rate_error: by how much of a second the rate of either clock may be off in a second.
    """
    return length_s * (1 + rate_error) / (1 - rate_error)
