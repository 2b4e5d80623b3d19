"""Interrupting a statement that runs on another thread: on request, or when it has run for too long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from triplicate.errors import SqlError
from triplicate.runtime import UninterruptedFuture


class TransactionLost(Exception):
    """SQLite ended the whole transaction: ON CONFLICT ROLLBACK, RAISE(ROLLBACK), an interrupt, a full disk. `error` is for the client."""

    def __init__(self, error: SqlError) -> None:
        super().__init__(error.message)
        self.error = error


class StopFlag:
    """Set from another thread to interrupt the statement that was given it."""

    # A default of the class, because each call of a session makes a flag and few are set.
    reason: SqlError | None = None


class StatementLimit:
    """Interrupts the statements of one connection. Used by its thread; only the flag's reason is set by others.

    Args:
        now: a clock in seconds that never goes back.
        limit_s: the longest time that a statement with a deadline may run, in seconds.
    """

    def __init__(self, now: Callable[[], float], limit_s: float) -> None:
        self._now = now
        self._limit_s = limit_s
        self._deadline = float("inf")
        self.stop = StopFlag()
        """Of the statement that runs."""

    def start(self, stop: StopFlag) -> None:
        """A statement with a deadline starts."""
        self.stop, self._deadline = stop, self._now() + self._limit_s

    def clear(self) -> None:
        """No statement runs."""
        self.stop, self._deadline = StopFlag(), float("inf")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is interrupted meanwhile: what a connection does before and after a statement must end."""
        stop, deadline = self.stop, self._deadline
        self.clear()
        try:
            yield
        finally:
            self.stop, self._deadline = stop, deadline

    @property
    def is_reached(self) -> bool:
        """Whether the statement must stop; SQLite asks after each few thousand steps."""
        if self._now() > self._deadline and self.stop.reason is None:
            self.stop.reason = SqlError(
                "57014", f"the statement held the writer for {self._limit_s:g} s", hint="Change fewer rows at a time."
            )
        return self.stop.reason is not None


def interrupted_by_cancellation(stop: StopFlag) -> UninterruptedFuture[Any]:
    """The future of a statement on a thread. When its waiter is cancelled, the statement is interrupted and its end is awaited: the next
    user of the connection must not meet it there.
    """

    def interrupt() -> None:
        stop.reason = stop.reason or SqlError("57014", "canceling statement because its client has gone")

    return UninterruptedFuture(interrupt)
