"""A tree that replaces expired sessions.

A session may expire while its process is only slow: stopped, starved, or partitioned. Most users of the tree do not depend on the session,
so this tree opens another one and continues. Ephemeral nodes do not return by themselves: their owner must watch them and create them
again. An ephemeral node therefore indicates liveness but grants no exclusive right. Versions and fencing enforce exclusive access.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from triplicate.errors import AccessRefused, ConfigError, ConnectionLost, NoNode, SessionExpired, WrongCluster
from triplicate.metadata.core.tree import ANY_VERSION, Stat, Tree, TreeOperation, Watch
from triplicate.runtime import Backoff, Host, shielded, sleep

Result = TypeVar("Result")

SESSIONS_PER_OPERATION_MAX = 3

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 1.0
"""Bounds of a watch's pause after an attempt to open a session failed."""

REFUSED_PAUSE_S = 5.0
"""Time after a refusal by the store in which no further session is attempted. Operations fail at once with the refusal."""


class RenewingTree:
    """A `Tree` over a sequence of sessions. It raises SessionExpired only after `close`. An operation that meets an expired session was not
    applied; it is repeated on the next session, and watches wake. If new sessions expire at once, operations raise ConnectionLost.

    A change that relies on an ephemeral node of this process must not be repeated so: see `session_nodes`."""

    def __init__(self, first: Tree, open_session: Callable[[], Awaitable[Tree]], host: Host) -> None:
        self._tree = first
        self._open_session = open_session
        self._host = host
        self._expired = False
        self._closed = False
        self._renewing = asyncio.Lock()
        self._check: Callable[[Tree], Awaitable[None]] | None = None
        self._refused: AccessRefused | None = None
        self._again_at = 0.0

    def require(self, check: Callable[[Tree], Awaitable[None]]) -> None:
        """Accept a new session only if `check` raises nothing for it: the address may lead to another store by then."""
        self._check = check

    @property
    def session_id(self) -> int:
        """Id of the present session. It changes when a session is replaced."""
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

    async def run(self, operation: Callable[[Tree], Awaitable[Result]]) -> Result:
        """Run an operation that the interface does not have, as those of the interface are run.

        Args:
            operation: of the present session. It may be called several times.
        """
        return await self._run(operation)

    async def run_in(self, session_id: int, operation: Callable[[Tree], Awaitable[Result]]) -> Result:
        """Run an operation in one session only.

        Raises:
            NoNode: the session has expired, and its ephemeral nodes are gone. Otherwise as operations of the interface.
        """
        tree = await self.current()
        if tree.session_id == session_id:
            try:
                return await operation(tree)
            except SessionExpired:
                self.mark_expired(tree)
                if self._closed:
                    raise
        raise NoNode(f"session {session_id} is over, and its ephemeral nodes are gone")

    async def _run(self, operation: Callable[[Tree], Awaitable[Result]]) -> Result:
        for _ in range(SESSIONS_PER_OPERATION_MAX - 1):
            tree = await self.current()
            try:
                return await operation(tree)
            except SessionExpired:
                self.mark_expired(tree)
        tree = await self.current()
        try:
            return await operation(tree)
        except SessionExpired as error:
            self.mark_expired(tree)
            if self._closed:
                raise
            raise ConnectionLost(f"{SESSIONS_PER_OPERATION_MAX} metadata sessions expired one after another: {error}") from error

    def mark_expired(self, tree: Tree) -> None:
        """Record that a session has expired."""
        if tree is self._tree:
            self._expired = True

    async def current(self) -> Tree:
        """The present session. A new one is opened if the last one expired.

        Raises:
            SessionExpired: this tree was closed. ConnectionLost: no session can be opened; the next call tries again. Also if the store
                refuses this process, which it once let in: a rotated password or a wrong certificate must not end every process at once.
            WrongCluster: the check given to `require` refused the new session; the next call tries again.
        """
        if self._expired and not self._closed:
            async with self._renewing:
                if self._expired and not self._closed:
                    await shielded(self._renew())
        if self._closed:
            raise SessionExpired(f"session {self._tree.session_id} was closed")
        return self._tree

    async def _renew(self) -> None:
        """Runs shielded from cancellation: an opened session must not be dropped without closing it."""
        old, new = self._tree, await self._next_session()
        try:
            # The new session's server may lack changes that the old session has read.
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

    async def _next_session(self) -> Tree:
        now = self._host.clock.monotonic()
        if self._refused is None or now >= self._again_at:
            try:
                tree = await self._open_session()
            except AccessRefused as error:
                self._refused, self._again_at = error, now + REFUSED_PAUSE_S
                self._host.trace("metadata.access_refused", error=str(error))
            except ConfigError as error:
                # The first session was opened with the same address, and what has changed since may change back.
                raise ConnectionLost(f"no metadata session: {error}") from error
            else:
                self._refused = None
                return tree
        raise ConnectionLost(f"no metadata session: {self._refused}") from self._refused


class _RenewingWatch:
    """A watch that moves to the next session with its tree, and wakes then."""

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
            self._owner.mark_expired(self._tree)
            # Raises if the tree was closed. Otherwise changes between the sessions may have been missed: return, as after a change.
            try:
                self._tree = await self._owner.current()
            except (ConnectionLost, WrongCluster):
                # The reader's next operation meets the same error and has its own retries. The pause stops a caller that loops over
                # `changed` alone from spinning while sessions cannot be opened.
                await sleep(self._clock, self._backoff.next_s())
                return
            self._backoff.reset()
            if not self._closed:
                self._watch = self._tree.watch(self._path)

    def close(self) -> None:
        self._closed = True
        self._watch.close()
