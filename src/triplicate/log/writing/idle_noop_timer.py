"""The timer of the no-op that an idle writer appends behind its last records."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.log.core.noop_delay import NoopDelay
from triplicate.runtime import Clock, Timer


class IdleNoopTimer:
    """Calls `append_noop` once some time after `schedule`, unless it is cancelled.

    Args:
        delay_s: the time, seconds.
    """

    def __init__(self, clock: Clock, delay_s: float, append_noop: Callable[[], None]) -> None:
        self._clock = clock
        self._usual_s = delay_s
        self._append_noop = append_noop
        self._delay: NoopDelay | None = None
        """None while the time is always the same."""
        self._timer: Timer | None = None

    def wait_for_entries(self, longest_s: float) -> None:
        """Where entries are frequent, wait for the next one up to `longest_s` seconds. Batches of `LogWriter.append` do not count."""
        self._delay = NoopDelay(self._usual_s, longest_s)

    def appended(self, now: float) -> None:
        """An entry was appended, which makes the records before it readable. Those of the entry itself are scheduled for when it is
        acknowledged.

        Args:
            now: seconds of the monotonic clock.
        """
        if self._delay is not None:
            self._delay.appended(now)
            self.cancel()

    def schedule(self) -> None:
        """Start the timer, unless it runs."""
        if self._timer is None:
            delay_s = self._usual_s if self._delay is None else self._delay.delay_s()
            self._timer = self._clock.call_at(self._clock.monotonic() + delay_s, self._over)

    def hurry(self) -> None:
        """Call `append_noop` now if the timer runs."""
        if self._timer is not None:
            self.cancel()
            self._append_noop()

    def _over(self) -> None:
        self._timer = None
        self._append_noop()

    def cancel(self) -> None:
        """Stop the timer. Idempotent."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
