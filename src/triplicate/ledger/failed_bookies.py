"""Bookies that failed a writer: the backoff of each, and how long an ack quorum has been lost. Pure: the caller passes the time.

A failed bookie takes no entries until a probe of it is answered. The probe reads the ledger's last entry; any answer proves that the bookie
serves requests again. Without the probe, entries sent to a bookie that accepts connections and then hangs would delay every append.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from triplicate.errors import BookieError, RequestTimeout

BACKOFF_TIMEOUTS_MAXIMUM = 12
"""Longest backoff after a missing answer, in add timeouts: each attempt with a bookie that hangs may delay the writer for one timeout."""
FORGIVEN_BACKOFFS = 2
"""The backoff of a bookie starts over once the bookie has been healthy for this many maximum backoffs."""


class FailureBackoff(Protocol):
    """Pauses that grow; `triplicate.runtime.Backoff` implements it."""

    def next_s(self) -> float:
        """The next pause, in seconds."""

    def reset(self) -> None:
        """Start over with the shortest pause."""


class FailedBookie:
    """One bookie that failed.

    Attributes:
        error: the reason of the last failure.
        retry_at: end of the backoff, in seconds of the monotonic clock.
        is_probed: a probe is in flight.
        is_back: a probe was answered after the last failure.
    """

    __slots__ = ("_backoff", "_longest_s", "error", "is_back", "is_probed", "retry_at")

    def __init__(self, error: BookieError, backoff: FailureBackoff, longest_s: float, now: float) -> None:
        self._backoff = backoff
        self._longest_s = longest_s
        self.is_probed = False
        self.fail(error, now)

    def fail(self, error: BookieError, now: float) -> None:
        """Record a further failure, of an add or of a probe."""
        self.error = error
        self.is_back = False
        self.retry_at = now + self._backoff.next_s()

    def has_expired(self, now: float) -> bool:
        """Whether the last failure is too long ago to predict the next one."""
        return now > self.retry_at + FORGIVEN_BACKOFFS * self._longest_s


class FailedBookies:
    """The bookies that failed one writer, by id.

    Args:
        make_backoff: makes a backoff from its shortest and its longest pause, in seconds.
        add_timeout_s: shortest backoff after a missing answer.
        reconnect_first_s: shortest backoff after any other failure. reconnect_maximum_s: the longest.
    """

    def __init__(
        self,
        make_backoff: Callable[[float, float], FailureBackoff],
        add_timeout_s: float,
        reconnect_first_s: float,
        reconnect_maximum_s: float,
    ) -> None:
        self._make_backoff = make_backoff
        self._add_timeout_s = add_timeout_s
        self._reconnect_first_s = reconnect_first_s
        self._reconnect_maximum_s = reconnect_maximum_s
        self._failed: dict[str, FailedBookie] = {}

    def __getitem__(self, bookie_id: str) -> FailedBookie:
        return self._failed[bookie_id]

    def fail(self, bookie_id: str, error: BookieError, now: float) -> None:
        """Record that a bookie of the ensemble failed."""
        failed = self._failed.get(bookie_id)
        if failed is None or failed.has_expired(now):
            first_s, longest_s = self._backoff_bounds(error)
            self._failed[bookie_id] = FailedBookie(error, self._make_backoff(first_s, longest_s), longest_s, now)
        else:
            failed.fail(error, now)

    def is_backing_off(self, bookie_id: str, now: float) -> bool:
        """Whether the bookie failed so recently that it should not be chosen."""
        failed = self._failed.get(bookie_id)
        return failed is not None and now < failed.retry_at

    def forget_expired(self, keep: Iterable[str], now: float) -> None:
        """Drop the bookies whose last failure is long ago, except those to keep."""
        kept = dict.fromkeys(keep)
        self._failed = {name: failed for name, failed in self._failed.items() if name in kept or not failed.has_expired(now)}

    def begin_probe(self, bookie_id: str, now: float) -> bool:
        """Whether a probe is due: the backoff is over, and no probe is in flight or answered. If so, it counts as in flight."""
        failed = self._failed[bookie_id]
        if failed.is_probed or failed.is_back or now < failed.retry_at:
            return False
        failed.is_probed = True
        return True

    def end_probe(self, bookie_id: str, error: BookieError | None, now: float) -> None:
        """Record the result of a probe; `error` is None when it was answered. A bookie that was forgotten meanwhile is ignored."""
        failed = self._failed.get(bookie_id)
        if failed is None:
            return
        failed.is_probed = False
        if error is not None:
            failed.fail(error, now)
        else:
            failed.is_back = True

    def reasons(self, bookie_ids: Iterable[str]) -> str:
        """Why each of these failed, for a message."""
        return "; ".join(f"{bookie_id}: {self._failed[bookie_id].error}" for bookie_id in bookie_ids)

    def _backoff_bounds(self, error: BookieError) -> tuple[float, float]:
        if isinstance(error, RequestTimeout):
            return self._add_timeout_s, BACKOFF_TIMEOUTS_MAXIMUM * self._add_timeout_s
        return self._reconnect_first_s, max(self._reconnect_first_s, self._reconnect_maximum_s)


class QuorumLossTimer:
    """How long an ack quorum has been lost.

    Args:
        calm_s: a loss within this time of the one before, with nothing confirmed between, continues it: a bookie may answer a probe
            and fail the next entry again.
    """

    def __init__(self, calm_s: float) -> None:
        self.since = 0.0
        """Start of the present loss, in seconds of the monotonic clock; meaningless while there is none."""
        self._calm_s = calm_s
        self._seen_at: float | None = None
        self._confirmed = -1

    def note(self, now: float, last_add_confirmed: int) -> None:
        """Record that an ack quorum is lost now."""
        if self._seen_at is None or now > self._seen_at + self._calm_s or last_add_confirmed > self._confirmed:
            self.since = now
        self._seen_at, self._confirmed = now, last_add_confirmed
