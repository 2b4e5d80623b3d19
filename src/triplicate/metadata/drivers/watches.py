"""Watches on this side of a session: what the drivers share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from triplicate.errors import MetadataError
from triplicate.metadata.core.tree import Watch
from triplicate.runtime import first_of


class LocalWatch:
    """A level-triggered watch: remembers that something happened until `changed` has told it.

    A wake-up is never lost: when the task that it was meant for is cancelled, the next call of `changed` returns at once.
    """

    def __init__(self, table: WatchTable, path: str) -> None:
        self._table: WatchTable | None = table
        self._path = path
        self._happened = False
        self._error: MetadataError | None = None
        self._waiters: list[asyncio.Future[None]] = []

    async def changed(self) -> None:
        """See `Watch.changed`. After `close` it never returns by itself."""
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
        """Something may have changed."""
        if self._waiters:
            self._release()
        else:
            self._happened = True

    def fail(self, error: MetadataError) -> None:
        """The tree is finished: `changed` raises from now on."""
        self._error = error
        self._release()

    def close(self) -> None:
        table, self._table = self._table, None
        if table is not None:
            table.remove(self._path, self)

    def _release(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


class WatchTable:
    """The watches of one session by path, in the order in which they were made."""

    def __init__(self) -> None:
        self._watches: dict[str, list[LocalWatch]] = {}
        self._error: MetadataError | None = None

    def __len__(self) -> int:
        return len(self._watches)

    def __contains__(self, path: str) -> bool:
        return path in self._watches

    def paths(self) -> list[str]:
        """The watched paths, each once, oldest first."""
        return list(self._watches)

    def add(self, path: str) -> LocalWatch:
        """Make a watch, armed from now on."""
        watch = LocalWatch(self, path)
        if self._error is not None:
            watch.fail(self._error)
        else:
            self._watches.setdefault(path, []).append(watch)
        return watch

    def remove(self, path: str, watch: LocalWatch) -> None:
        """Forget a watch; harmless when it is not there."""
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
        """Wake every watch: nobody knows what happened."""
        self.wake(self.paths())

    def fail(self, error: MetadataError) -> None:
        """The session is over: every watch raises, those made later too."""
        self._error = error
        watches, self._watches = self._watches, {}
        for same_path in watches.values():
            for watch in same_path:
                watch.fail(error)


class JoinedWatch:
    """Several watches as one, for one waiter."""

    def __init__(self, watches: Iterable[Watch]) -> None:
        self._watches = list(watches)
        self._happened = False

    async def changed(self) -> None:
        """Return when any of them has changed."""
        if not self._happened:
            await first_of([self._wait(watch) for watch in self._watches], name="watch")
        self._happened = False

    def close(self) -> None:
        for watch in self._watches:
            watch.close()

    async def _wait(self, watch: Watch) -> None:
        await watch.changed()
        # Noted here, where the wake-up is taken: if our caller is cancelled in this very turn, its next call returns at once.
        self._happened = True
