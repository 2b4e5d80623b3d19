"""Waiting for a result in spite of a cancellation, without a task of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


class UninterruptedFuture(asyncio.Future[Result]):
    """A result that its waiter cannot abandon: a cancellation of the waiting task is raised there once the result is there.

    For work that must have ended before its waiter goes on, such as a function on another thread. `shielded` does the same for a
    coroutine, and costs a task and three turns of the loop. The work must limit its own time.

    A failure of the work is not raised if the waiter was cancelled meanwhile; it stays in the future.

    Args:
        on_cancel: called on the loop when a waiting task is cancelled, to end the work early.
    """

    def __init__(self, on_cancel: Callable[[], None] | None = None) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self._on_cancel = on_cancel

    def cancel(self, msg: Any | None = None) -> bool:
        """Ask for an early end. Returns False, by which asyncio keeps the cancellation until the waiting task resumes."""
        if self._on_cancel is not None and not self.done():
            self._on_cancel()
        return False
