"""A tree that outlives its sessions.

A session may be declared dead while its process is only slow: stopped, starved, or cut off. Most users of the tree do not care whose
session reads and changes persistent nodes, so this tree opens another one and goes on. What does not come back by itself are the
ephemeral nodes: whoever holds one watches it, finds it gone, and makes it again (`BookieRegistry.keep_registered`). Holding an
ephemeral node is therefore a sign of life and no right: what must be exclusive is decided by versions and by fencing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from triplicate.errors import ConnectionLost, SessionExpired, WrongCluster
from triplicate.metadata.core.tree import ANY_VERSION, Stat, Tree, TreeOperation, Watch
from triplicate.runtime import Backoff, Host, shielded, sleep

Result = TypeVar("Result")

SESSIONS_PER_OPERATION_MAX = 3

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 1.0
"""Bounds of the pause of a watch that finds no session to move to."""


class RenewingTree:
    """A `Tree` over one session after another. It raises SessionExpired only once it was closed. An operation that met an expired
    session was not applied and is made again on the next one; watches wake. Sessions that die as fast as they are opened are a lost
    connection: a later attempt may succeed."""

    def __init__(self, first: Tree, open_session: Callable[[], Awaitable[Tree]], host: Host) -> None:
        self._tree = first
        self._open_session = open_session
        self._host = host
        self._expired = False
        self._closed = False
        self._renewing = asyncio.Lock()
        self._check: Callable[[Tree], Awaitable[None]] | None = None

    def require(self, check: Callable[[Tree], Awaitable[None]]) -> None:
        """Work on with a new session only where `check` raises nothing for it: behind the same address there may be another store."""
        self._check = check

    @property
    def session_id(self) -> int:
        """The present session's; it changes when a session is lost."""
        return self._tree.session_id

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False, parents: bool = False
    ) -> str:
        return await self._run(lambda tree: tree.create(path, data, ephemeral=ephemeral, sequential=sequential, parents=parents))

    async def get(self, path: str) -> tuple[bytes, Stat]:
        return await self._run(lambda tree: tree.get(path))

    async def exists(self, path: str) -> Stat | None:
        return await self._run(lambda tree: tree.exists(path))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        return await self._run(lambda tree: tree.set(path, data, version))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._run(lambda tree: tree.delete(path, version))

    async def children(self, path: str) -> tuple[list[str], Stat]:
        return await self._run(lambda tree: tree.children(path))

    async def multi(self, operations: Sequence[TreeOperation]) -> None:
        await self._run(lambda tree: tree.multi(operations))

    async def sync(self, path: str) -> None:
        await self._run(lambda tree: tree.sync(path))

    def watch(self, path: str) -> Watch:
        return _RenewingWatch(self, self._host, self._tree, path)

    async def close(self) -> None:
        self._closed = True
        await shielded(self._close())

    async def _close(self) -> None:
        async with self._renewing:
            await self._tree.close()

    async def _run(self, operation: Callable[[Tree], Awaitable[Result]]) -> Result:
        for _ in range(SESSIONS_PER_OPERATION_MAX - 1):
            tree = await self.current()
            try:
                return await operation(tree)
            except SessionExpired:
                self.lost(tree)
        tree = await self.current()
        try:
            return await operation(tree)
        except SessionExpired as error:
            self.lost(tree)
            if self._closed:
                raise
            raise ConnectionLost(f"{SESSIONS_PER_OPERATION_MAX} metadata sessions expired one after another: {error}") from error

    def lost(self, tree: Tree) -> None:
        """A session turned out to be over."""
        if tree is self._tree:
            self._expired = True

    async def current(self) -> Tree:
        """The present session; a new one where the last was lost.

        Raises:
            SessionExpired: this tree was closed. ConnectionLost: no session can be opened now; the next call tries again.
            WrongCluster: the new session is refused (`require`); the next call tries again.
        """
        if self._expired and not self._closed:
            async with self._renewing:
                if self._expired and not self._closed:
                    await shielded(self._renew())
        if self._closed:
            raise SessionExpired(f"session {self._tree.session_id} was closed")
        return self._tree

    async def _renew(self) -> None:
        """Not interrupted half-way: a session that was opened must not be dropped unclosed."""
        old, new = self._tree, await self._open_session()
        try:
            # The new session may be with a server that is behind what the old one has shown already.
            await new.sync("/")
            if self._check is not None:
                await self._check(new)
        except SessionExpired as error:
            await new.close()
            raise ConnectionLost(f"a new metadata session expired at once: {error}") from error
        except BaseException:
            await new.close()
            raise
        self._tree = new
        self._expired = False
        self._host.trace("metadata.session_renewed", old=old.session_id, new=self._tree.session_id)
        await old.close()


class _RenewingWatch:
    """A watch that moves to the next session with its tree, and wakes when it does."""

    def __init__(self, owner: RenewingTree, host: Host, tree: Tree, path: str) -> None:
        self._owner = owner
        self._clock = host.clock
        self._backoff = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S, host.entropy.stream("metadata watches"))
        self._tree = tree
        self._path = path
        self._watch = tree.watch(path)
        self._closed = False

    async def changed(self) -> None:
        try:
            await self._watch.changed()
        except SessionExpired:
            self._owner.lost(self._tree)
            # Raises when the tree was closed. Otherwise nobody knows what happened between the sessions: return, as for a change.
            try:
                self._tree = await self._owner.current()
            except (ConnectionLost, WrongCluster):
                # The reader's own attempt meets the same, with its own patience; our next call tries again. A reader that only notes
                # that something may have changed calls at once, and where sessions fail to open at once would never rest.
                await sleep(self._clock, self._backoff.next_s())
                return
            self._backoff.reset()
            if not self._closed:
                self._watch = self._tree.watch(self._path)

    def close(self) -> None:
        self._closed = True
        self._watch.close()
