"""Which reads a leader may answer: those covered by its lease, and those older than an append that was acknowledged. Pure.

A leader that has been replaced does not notice it by itself. A read is therefore answered only when no other node can have acknowledged
anything before the read arrived. Two facts prove it: the lease holds, or an append that was sent after the read arrived was acknowledged.
Times are seconds of the leader's own clock, which counts suspended time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from triplicate.replica.core.lease import Lease

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class SentAppend(Generic[Read]):
    """An append on its way to the log."""

    sent_at: float
    reads: tuple[Read, ...]
    """Those that its acknowledgement confirms."""


class ReadConfirmation(Generic[Read]):
    """The reads that wait for confirmation, and the lease.

    Args:
        lease_s: the lease of the database in seconds; 0 for none.
    """

    def __init__(self, lease_s: float) -> None:
        self._lease = Lease(lease_s)
        self._waiting: list[Read] = []
        self._renewal_due = False

    def is_confirmed(self, now: float) -> bool:
        """Whether a read that arrived before `now` may be answered under the lease. Requests a renewal where one is due."""
        lease = self._lease
        if now >= lease.ends_at:
            return False
        if now >= lease.renewal_due_at:
            self._renewal_due = True
        return True

    def age_s(self, now: float) -> float:
        """See `Lease.age_s`."""
        return self._lease.age_s(now)

    @property
    def wants_append(self) -> bool:
        """Whether an append without records should be sent: a read waits, or the lease is to be renewed."""
        return self._renewal_due or bool(self._waiting)

    def wait(self, read: Read) -> None:
        """A read waits for the next append to be sent."""
        self._waiting.append(read)

    def send(self, now: float) -> SentAppend[Read]:
        """An append is about to be sent to the log. It covers all reads that wait now, and none that come later."""
        self._lease.sending(now)
        reads, self._waiting = tuple(self._waiting), []
        return SentAppend(now, reads)

    def send_noop(self, now: float) -> SentAppend[Read]:
        """As `send`, for an append without records, which answers a request for renewal."""
        self._renewal_due = False
        return self.send(now)

    def acknowledge(self, sent: SentAppend[Read]) -> tuple[Read, ...]:
        """The log has acknowledged an append; the reads that it confirms."""
        self._lease.acknowledged(sent.sent_at)
        return sent.reads

    def refuse(self, sent: SentAppend[Read]) -> None:
        """The log refused the append before it was sent: its reads wait for the next, before all others."""
        self._waiting[:0] = sent.reads

    def close(self) -> tuple[Read, ...]:
        """The leadership has ended; the reads that still wait."""
        reads, self._waiting = tuple(self._waiting), []
        return reads
