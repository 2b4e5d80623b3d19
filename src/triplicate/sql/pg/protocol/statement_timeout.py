"""``statement_timeout``: interrupts what a connection runs, or waits for, after the time that its client has set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from triplicate.errors import SqlError
from triplicate.sql.pg.protocol.connection_state import ConnectionState

Result = TypeVar("Result")


@asynccontextmanager
async def statement_timeout(state: ConnectionState, seconds: float) -> AsyncIterator[None]:
    """Interrupt the connection after `seconds`. Its statement then fails with 57014."""
    is_over = False

    def end() -> None:
        nonlocal is_over
        is_over = True
        state.interrupt()

    timer = state.clock.call_at(state.clock.monotonic() + seconds, end)
    try:
        yield
    except SqlError as error:
        if is_over and error.sqlstate == "57014":
            raise SqlError("57014", "canceling statement due to statement timeout") from error
        raise
    finally:
        timer.cancel()


async def in_time(state: ConnectionState, work: Callable[[], Awaitable[Result]]) -> Result:
    """The result of the work, within the client's statement_timeout. Raises SqlError 57014, and what the work raises."""
    seconds = state.settings.statement_timeout_s
    if seconds <= 0:
        return await work()
    async with statement_timeout(state, seconds):
        return await work()
