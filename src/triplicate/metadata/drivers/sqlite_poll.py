"""Noticing that another connection has written the SQLite file, on the event loop and without a change of threads.

A session with watches checks 50 times a second, and half as often after a second without a write. A check reads some shared memory, so it
costs less than waking a thread for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import apsw

from triplicate.runtime import Clock, Timer, resolve

POLL_INTERVAL_S = 0.02
QUIET_INTERVAL_S = 0.04
"""The interval while nothing writes: most of the cost of an idle node is that its process wakes."""
QUIET_AFTER_S = 1.0
"""Time without a write after which `QUIET_INTERVAL_S` applies."""


class SqlitePoll:
    """Checks at intervals whether the file was written through any other connection, this session's own included.

    It has a connection of its own without a busy timeout: a check waits for no lock. It may report a write that did not happen, for
    example while the file is locked, and never misses one.

    Made on the driver's worker, used on the loop, closed on the worker.

    Args:
        path: a file that another connection of this process holds open.
    """

    def __init__(self, path: str) -> None:
        self._database = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        self._seen_version: int | None = None
        """SQLite's data version at the last check that its caller has acted on; None before that."""

    def version(self) -> int | None:
        """SQLite's data version for this connection; None if it cannot be read now."""
        try:
            version = self._database.pragma("data_version")
        except apsw.Error:
            return None  # The driver's worker meets the same error and reports it.
        number: int = version
        return number

    def seen(self, version: int | None) -> None:
        """The caller knows all writes up to this version; None: it knows nothing."""
        self._seen_version = version

    async def changed(self, clock: Clock, is_due: Callable[[], bool], least_interval_s: float = 0.0) -> int | None:
        """Return at the first check that finds a write after `seen`, or at which `is_due` is true.

        The first check follows an interval after the call.

        Args:
            least_interval_s: least time between two checks, for sessions that need no quick answer.

        Returns:
            The version, or None if it cannot be read.
        """
        found: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        began = clock.monotonic()
        timer: Timer

        def check() -> None:
            nonlocal timer
            version = self.version()
            if version is None or version != self._seen_version or is_due():
                resolve(found, version)
            else:
                now = clock.monotonic()
                interval_s = POLL_INTERVAL_S if now - began < QUIET_AFTER_S else QUIET_INTERVAL_S
                timer = clock.call_at(now + max(least_interval_s, interval_s), check)

        timer = clock.call_at(began + max(least_interval_s, POLL_INTERVAL_S), check)
        try:
            return await found
        finally:
            timer.cancel()

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self._database.close()
