"""Retries after a lost connection, for operations that are safe to apply twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from triplicate.errors import ConnectionLost
from triplicate.runtime import Backoff, Host, sleep

Result = TypeVar("Result")

ATTEMPTS = 8
FIRST_DELAY_S = 0.02
LONGEST_DELAY_S = 1.0


class Attempts:
    """A bounded number of attempts with growing delays between them."""

    def __init__(self, host: Host) -> None:
        self._clock = host.clock
        self._began = host.clock.monotonic()
        self._backoff = Backoff(FIRST_DELAY_S, LONGEST_DELAY_S, host.entropy.stream("metadata.retry"))

    async def again(self, error: ConnectionLost) -> None:
        """Wait before the next attempt.

        Raises:
            ConnectionLost: no attempts are left. The message has the given error's text and the time spent.
        """
        if self._backoff.attempts + 1 >= ATTEMPTS:
            tried_s = self._clock.monotonic() - self._began
            raise ConnectionLost(f"{error}; tried {ATTEMPTS} times in {tried_s:.0f} s") from error
        await sleep(self._clock, self._backoff.next_s())


async def retried(host: Host, operation: Callable[[], Awaitable[Result]]) -> Result:
    """Run an idempotent operation, and repeat it while the connection is lost.

    Raises:
        ConnectionLost: `ATTEMPTS` attempts failed.
    """
    attempts = Attempts(host)
    while True:
        try:
            return await operation()
        except ConnectionLost as error:
            await attempts.again(error)
