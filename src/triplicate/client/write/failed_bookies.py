"""Bookies that failed a writer: how long each is left alone, and the question to it whether it is back.

A bookie that failed is asked to read the ledger's last entry; whatever it answers, it takes requests again. Only then it is trusted with
entries: sending them to a bookie that takes connections and does nothing would make everybody wait for it once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from triplicate.client.context import ClientContext
from triplicate.errors import BookieError, RequestTimeout
from triplicate.runtime import Backoff
from triplicate.wire import LAST_ENTRY, ReadResponse

TIMEOUTS_MAXIMUM = 12
"""The longest pause after a missing answer, in add timeouts: each trial of a bookie that hangs may hold up the writer for one."""
FORGIVEN_PAUSES = 2
"""A bookie that lasted so many of its longest pauses starts with the shortest when it fails again."""


class FailedBookie:
    """What is known of one bookie that failed.

    Attributes:
        error: why it failed last.
        until: when its pause is over, on the monotonic clock.
        is_asked: the question is on its way.
        is_back: it answered.
    """

    __slots__ = ("_longest_s", "_pauses", "error", "is_asked", "is_back", "until")

    def __init__(self, error: BookieError, pauses: Backoff, longest_s: float, now: float) -> None:
        self._pauses = pauses
        self._longest_s = longest_s
        self.is_asked = False
        self.failed(error, now)

    def failed(self, error: BookieError, now: float) -> None:
        """It failed again, or is still not back."""
        self.error = error
        self.is_back = False
        self.until = now + self._pauses.next_s()

    def is_forgiven(self, now: float) -> bool:
        """Whether its last failure is so long ago that it says nothing about the next."""
        return now > self.until + FORGIVEN_PAUSES * self._longest_s


class FailedBookies:
    """Belongs to one writer.

    Args:
        news: called when a bookie has answered the question, or has not in time.
    """

    def __init__(self, context: ClientContext, ledger_id: int, news: Callable[[], None]) -> None:
        self._context = context
        self._ledger_id = ledger_id
        self._news = news
        self._known: dict[str, FailedBookie] = {}
        self._rng = context.host.entropy.stream("absent bookies")

    def __getitem__(self, bookie_id: str) -> FailedBookie:
        return self._known[bookie_id]

    def failed(self, bookie_id: str, error: BookieError) -> None:
        """A bookie of the ensemble failed."""
        now = self._context.host.clock.monotonic()
        known = self._known.get(bookie_id)
        if known is None or known.is_forgiven(now):
            first_s, longest_s = self._pauses_after(error)
            self._known[bookie_id] = FailedBookie(error, Backoff(first_s, longest_s, self._rng), longest_s, now)
        else:
            known.failed(error, now)

    def is_left_alone(self, bookie_id: str) -> bool:
        """Whether the bookie failed so lately that it should not be chosen."""
        known = self._known.get(bookie_id)
        return known is not None and self._context.host.clock.monotonic() < known.until

    def forget_the_forgiven(self, keep: Iterable[str]) -> None:
        """Drop what says nothing any more, but for the bookies to keep."""
        now, kept = self._context.host.clock.monotonic(), dict.fromkeys(keep)
        self._known = {name: known for name, known in self._known.items() if name in kept or not known.is_forgiven(now)}

    def ask(self, bookie_id: str) -> None:
        """Put the question, if the pause is over and it is not on its way.

        Raises:
            HandleClosed: the client is closing, and nobody will ever answer.
        """
        known = self._known[bookie_id]
        if known.is_asked or known.is_back or self._context.host.clock.monotonic() < known.until:
            return
        channel = self._context.pool.channel(bookie_id)
        known.is_asked = True
        channel.read(self._ledger_id, LAST_ENTRY, self._answered, known)

    def why(self, bookie_ids: Iterable[str]) -> str:
        """What happened to each of these, for a message."""
        return "; ".join(f"{bookie_id}: {self._known[bookie_id].error}" for bookie_id in bookie_ids)

    def _answered(self, known: FailedBookie, response: ReadResponse | None, error: BookieError | None) -> None:
        known.is_asked = False
        if error is not None:
            known.failed(error, self._context.host.clock.monotonic())
        else:
            known.is_back = True
        self._news()

    def _pauses_after(self, error: BookieError) -> tuple[float, float]:
        settings = self._context.settings
        if isinstance(error, RequestTimeout):
            return settings.add_timeout_s, TIMEOUTS_MAXIMUM * settings.add_timeout_s
        return settings.reconnect_first_s, max(settings.reconnect_first_s, settings.reconnect_maximum_s)


class QuorumLossTimer:
    """How long an ack quorum has been in danger.

    Args:
        calm_s: a danger that is back within this time, and before anything was confirmed, had never been over: a bookie may answer, and
            fail the next entry again.
    """

    def __init__(self, calm_s: float) -> None:
        self.since = 0.0
        """When it began; means nothing while there is none."""
        self._calm_s = calm_s
        self._seen_at: float | None = None
        self._confirmed = -1

    def seen(self, now: float, last_add_confirmed: int) -> None:
        """An ack quorum is in danger now."""
        if self._seen_at is None or now > self._seen_at + self._calm_s or last_add_confirmed > self._confirmed:
            self.since = now
        self._seen_at, self._confirmed = now, last_add_confirmed
