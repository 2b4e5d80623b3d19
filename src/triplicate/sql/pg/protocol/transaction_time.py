"""The start of the transaction and of the statement, for ``now()`` and similar functions."""

from __future__ import annotations

from triplicate.runtime import Clock


class TransactionTime:
    """``now()`` returns the time of a transaction's first message in all its statements."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.began_us: int | None = None
        """When the open transaction began, in µs since 1970; None outside of one."""

    def begin(self) -> None:
        """Record the time of a message, which begins a transaction if none is open."""
        if self.began_us is None:
            self.began_us = self._clock.wall_us()

    def end(self) -> None:
        """End the transaction: the next message begins another one."""
        self.began_us = None

    @property
    def transaction_us(self) -> int:
        """When the transaction began, in µs since 1970."""
        if self.began_us is None:
            self.began_us = self._clock.wall_us()
        return self.began_us

    @property
    def statement_us(self) -> int:
        """Now, in µs since 1970. It begins a transaction if none is open, so that ``now()`` after it in the same statement is not later."""
        self.begin()
        return self._clock.wall_us()
