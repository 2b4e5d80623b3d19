"""The lease under which a leader answers reads on its own.

An append that an ack quorum has acknowledged was stored by a bookie that no successor had fenced. Recovery acknowledges no append that
was sent after a successor's take-over. So no take-over was complete when the last acknowledged append was *sent*. A successor waits for
the length of the lease after its take-over; so it neither acknowledges nor answers anything before the lease has ended. Only the rates of
clocks must be right: each node measures spans of time on its own.
"""

from __future__ import annotations


class Lease:
    """The time until which one leader may answer. Times are seconds of its own clock, which counts suspended time.

    Args:
        length_s: the lease of the database; 0 for a lease that never holds.
    """

    def __init__(self, length_s: float) -> None:
        self._length_s = length_s
        self.ends_at = float("-inf")
        """From this time on the lease does not hold."""
        self.renewal_due_at = float("-inf")
        """From this time on an append should be sent to extend the lease: none was sent for a third of its length."""
        self.sent_at = float("-inf")
        """When the last acknowledged append was sent: nobody else led before."""

    def sending(self, now: float) -> None:
        """An append is about to be sent."""
        self.renewal_due_at = now + self._length_s / 3

    def acknowledged(self, sent_at: float) -> None:
        """An append that was sent at this time, or later, was acknowledged."""
        self.sent_at = max(self.sent_at, sent_at)
        self.ends_at = self.sent_at + self._length_s

    def age_s(self, now: float) -> float:
        """The state of this leader lacks nothing that was acknowledged anywhere longer ago than this, in seconds."""
        return 0.0 if now < self.ends_at else now - self.sent_at


def wait_s(length_s: float, rate_error: float) -> float:
    """The time, in seconds of its own clock, after which a successor knows that a lease of this length has ended on its holder's clock.

    Args:
        rate_error: upper bound on the error of either clock's rate, in seconds per second.
    """
    return length_s * (1 + rate_error) / (1 - rate_error)
