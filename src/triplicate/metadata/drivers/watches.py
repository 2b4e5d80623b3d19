"""Client-side watches, shared by the drivers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from triplicate.errors import MetadataError
from triplicate.metadata.core.tree import Watch
from triplicate.runtime import first_of, resolve


class LocalWatch:
    """A level-triggered watch: it remembers a change until `changed` has reported it.

    A wake-up is never lost: if the waiting task is cancelled, the next call of `changed` returns at once.
    """

    def __init__(self, table: WatchTable, path: str) -> None:
        self._table: WatchTable | None = table
        self._path = path
        self._happened = False
        self._error: MetadataError | None = None
        self._waiters: list[asyncio.Future[None]] = []

    async def changed(self) -> None:
        """See `Watch.changed`. After `close` it does not return."""
        if self._error is None and not self._happened:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._happened = True
                raise
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        self._happened = False
        if self._error is not None:
            raise type(self._error)(*self._error.args)

    def wake(self) -> None:
        """Record that something may have changed."""
        if self._waiters:
            self._release()
        else:
            self._happened = True

    def fail(self, error: MetadataError) -> None:
        """Make `changed` raise from now on, because the session is over."""
        self._error = error
        self._release()

    def close(self) -> None:
        table, self._table = self._table, None
        if table is not None:
            table.remove(self._path, self)

    def _release(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            resolve(waiter, None)


class WatchTable:
    """The watches of one session by path, in the order of creation."""

    def __init__(self) -> None:
        self._watches: dict[str, list[LocalWatch]] = {}
        self._error: MetadataError | None = None

    def __len__(self) -> int:
        return len(self._watches)

    def __contains__(self, path: str) -> bool:
        return path in self._watches

    def paths(self) -> list[str]:
        """The watched paths without duplicates, oldest first."""
        return list(self._watches)

    def add(self, path: str) -> LocalWatch:
        """Create a watch. It is armed at once."""
        watch = LocalWatch(self, path)
        if self._error is not None:
            watch.fail(self._error)
        else:
            self._watches.setdefault(path, []).append(watch)
        return watch

    def remove(self, path: str, watch: LocalWatch) -> None:
        """Remove a watch, if it is there."""
        watches = self._watches.get(path)
        if watches is not None and watch in watches:
            watches.remove(watch)
            if not watches:
                del self._watches[path]

    def wake(self, paths: Iterable[str]) -> None:
        """Wake the watches on these paths."""
        for path in paths:
            for watch in list(self._watches.get(path, ())):
                watch.wake()

    def wake_all(self) -> None:
        """Wake every watch, because changes may have been missed."""
        self.wake(self.paths())

    def fail(self, error: MetadataError) -> None:
        """Fail every watch, also those created later, because the session is over."""
        self._error = error
        watches, self._watches = self._watches, {}
        for same_path in watches.values():
            for watch in same_path:
                watch.fail(error)


class JoinedWatch:
    """Combines several watches, for one waiter."""

    def __init__(self, watches: Iterable[Watch]) -> None:
        self._watches = list(watches)
        self._happened = False

    async def changed(self) -> None:
        """Return when any of the watches has changed."""
        if not self._happened:
            await first_of([self._wait(watch) for watch in self._watches], name="watch")
        self._happened = False

    def close(self) -> None:
        for watch in self._watches:
            watch.close()

    async def _wait(self, watch: Watch) -> None:
        await watch.changed()
        # Recorded where the wake-up is consumed: if the caller is cancelled in this loop iteration, its next call returns at once.
        self._happened = True
