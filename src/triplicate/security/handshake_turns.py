"""Turns among the TLS handshakes of a server. A handshake costs the server much more than the client that begins it."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from triplicate.runtime import Clock, own_task, timeout_at
from triplicate.security.core.token_bucket import TokenBucket


class TooManyHandshakes(Exception):
    """The turn of a handshake comes too late, since too many others wait."""


class WaitingConnection(Protocol):
    """A connection whose TLS handshake has not begun."""

    @property
    def is_lost(self) -> bool:
        """Whether it has ended."""

    async def wait(self) -> None:
        """Return when it has ended, or bytes have arrived."""


class HandshakeTurns:
    """Lets handshakes begin at a limited rate, in the order in which they ask.

    Args:
        per_s: the maximum rate.
    """

    def __init__(self, clock: Clock, per_s: int) -> None:
        self._clock = clock
        self._bucket = TokenBucket(per_s, clock.monotonic())

    async def wait(self, connection: WaitingConnection, deadline_s: float) -> bool:
        """Wait for a connection's turn. Where it is at once, this does not suspend.

        Args:
            deadline_s: monotonic time from which the handshake is of no use.

        Returns:
            False if the connection ended meanwhile: it keeps nobody waiting.

        Raises:
            TooManyHandshakes: the turn comes at the deadline or behind it.
        """
        now_s = self._clock.monotonic()
        wait_s = self._bucket.wait_s(now_s)
        if not wait_s:
            return True
        if now_s + wait_s < deadline_s:
            await own_task()
            with suppress(TimeoutError):
                async with timeout_at(now_s + wait_s):
                    while not connection.is_lost:
                        await connection.wait()
            if not connection.is_lost:
                return True
        self._bucket.give_back()
        if connection.is_lost:
            return False
        raise TooManyHandshakes
