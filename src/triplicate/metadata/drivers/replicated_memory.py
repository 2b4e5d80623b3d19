"""The tree in memory behind several servers, some of which lag. Its reads have ZooKeeper's guarantees and no stronger ones.

The leader makes all changes in one order, and each reaches every server later. A session is attached to one server and reads the state that
this server has applied. Reads may be stale, but the reads of one session never go back in time. The answer to a change, a result or a
refusal, is sent when the session's server has applied everything up to it, so a session sees its own changes. `sync` waits for the same.
Watches fire when the session's server applies the change. Ephemeral nodes are deleted at the leader when their session ends, and at the
other servers later. A session that loses its connection may move to a server that is not behind the one it leaves. A new session may see an
older state than an earlier session saw.

All servers may also be silent for a time: no operation is answered and no session expires until they answer again. A change that was sent
during the silence and timed out may then be applied, before anything else.

Without lag and silence every session sees each change at once, as with `MemoryStore`.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from triplicate.errors import ArgumentError, ConnectionLost, MetadataError, NoNode, SessionExpired
from triplicate.metadata.core.paths import check_path, parent_of
from triplicate.metadata.core.tree import Stat
from triplicate.metadata.drivers.memory_tree import MemoryStore, MemoryTree, _Change
from triplicate.metadata.drivers.watches import WatchTable
from triplicate.runtime import Clock, Timer, resolve

Result = TypeVar("Result")

SERVERS = 3
ANSWER_LIMIT_S = 10.0
"""Time after which an unanswered operation fails."""
READS = ("get", "exists", "children")
PROMPT_SHARE, SOON_SHARE, SOON_S = 0.5, 0.3, 0.02
"""A lagging server receives this share of the changes at once, this share within this time, and the others within its bound."""
TICK_S = 1e-9
"""Changes due within this time are applied now, because times are sums of floats."""
LATE_SHARE = 0.5
"""This share of the changes that timed out during a silence is applied when it ends."""


@dataclass(frozen=True, slots=True)
class _State:
    """The state of a node at one moment."""

    data: bytes
    stat: Stat
    children: tuple[str, ...]


@dataclass(slots=True)
class _Server:
    """One server: the changes that it has applied, and those on their way to it."""

    applied: int = 0
    """Number of the last change applied."""
    lag_high_s: float = 0.0
    """Maximum delay of a change. Changes arrive in order."""
    held: bool = False
    """Whether the server is held and applies nothing."""
    coming: deque[tuple[float, int]] = field(default_factory=deque)
    """The changes on their way: due time and number, in order."""
    waiting: list[tuple[int, asyncio.Future[None]]] = field(default_factory=list)
    """Held answers: the number of the change to wait for, and the future to resolve then."""
    timer: Timer | None = None


class ReplicatedMemoryStore(MemoryStore):
    """See the module's docstring.

    Args:
        clock: the store's clock.
        call_later: runs a callback after a time in seconds, in the store's context.
        chance: selects the servers of sessions and the delays of changes.
    """

    def __init__(
        self, clock: Clock, call_later: Callable[[float, Callable[[], None]], Timer], chance: random.Random, servers: int = SERVERS
    ) -> None:
        super().__init__(clock)
        self._call_later = call_later
        self._chance = chance
        self._servers = [_Server() for _ in range(servers)]
        self._attached: dict[int, int] = {}
        self._number = 0
        """Number of changes made by the leader."""
        self._changes: deque[tuple[int, dict[str, _State | None]]] = deque()
        """Changes that at least one server lacks, with the states of the touched nodes before them."""
        self._before: dict[str, deque[tuple[int, _State | None]]] = {}
        """The same states by path."""
        self._open_change: _Change | None = None
        self._remembered: dict[str, _State | None] = {}
        self._silent = False
        self._waiting: list[asyncio.Future[None]] = []
        self._late: list[Callable[[], None]] = []
        self._expiring: list[int] = []
        self.new_session_server: int | None = None
        """The server for new and moving sessions; None selects any."""
        self.stale_reads = 0
        """Number of stale reads."""
        self.unanswered = 0
        """Number of operations that timed out during a silence."""

    # Lag.

    @property
    def servers(self) -> int:
        """Number of servers."""
        return len(self._servers)

    def lag(self, server: int, high_s: float) -> None:
        """Delay changes to a server by up to `high_s` seconds; 0 delivers them at once, behind those on their way."""
        self._servers[server].lag_high_s = high_s

    def hold(self, server: int) -> None:
        """Stop a server from applying changes until `release`."""
        self._servers[server].held = True

    def release(self, server: int) -> None:
        """Let a held server apply changes again. Due changes are applied now."""
        self._servers[server].held = False
        self._arm(self._servers[server])

    def attach(self, session_id: int, server: int) -> None:
        """Move a live session to another server, which may be behind. The session's watches wake, because changes may have been
        missed."""
        self.require_session(session_id)
        self._attached[session_id] = server
        self._sessions[session_id].wake_all()

    def move(self, session_id: int) -> None:
        """Move a session that lost its connection to a server that has applied at least the changes the session may have read."""
        present = self._attached.get(session_id)
        if present is None:
            return
        seen = self._servers[present].applied
        candidates = [number for number, server in enumerate(self._servers) if server.applied >= seen]
        self.attach(session_id, self.new_session_server if self.new_session_server in candidates else self._chance.choice(candidates))

    def open_session(self) -> tuple[int, WatchTable]:
        session_id, table = super().open_session()
        self._attached[session_id] = (
            self._chance.randrange(len(self._servers)) if self.new_session_server is None else self.new_session_server
        )
        return session_id, table

    def seen(self, session_id: int, path: str) -> _State | None:
        """The state of a node at the session's server."""
        applied = self._servers[self._attached[session_id]].applied
        for number, state in self._before.get(path, ()):
            if number > applied:
                self.stale_reads += 1
                return state
        return self._state(path)

    async def wait_until_applied(self, session_id: int) -> None:
        """Wait until the session's server has applied every change that the leader has made before this call.

        Raises:
            SessionExpired: the session ended in the meantime.
        """
        target = self._number
        while session_id in self._attached:
            server = self._servers[self._attached[session_id]]
            if server.applied >= target:
                break
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            server.waiting.append((target, future))
            await future
        self.require_session(session_id)

    # The leader.

    def set(self, path: str, data: bytes, version: int, change: _Change) -> Stat:
        self._remember(change, path)
        return super().set(path, data, version, change)

    def delete(self, path: str, version: int, change: _Change) -> None:
        self._remember(change, path)
        if path != "/":
            self._remember(change, parent_of(path))
        super().delete(path, version, change)

    def _insert(self, path: str, data: bytes, owner: int, change: _Change) -> None:
        self._remember(change, path)
        self._remember(change, parent_of(path))
        super()._insert(path, data, owner, change)

    def commit(self, change: _Change) -> None:
        if not change.touched:
            return
        if self.observer is not None:
            self.observer(list(change.touched))
        self._number += 1
        if self._lags:
            before = {path: self._remembered[path] for path in change.touched}
            self._changes.append((self._number, before))
            for path, state in before.items():
                self._before.setdefault(path, deque()).append((self._number, state))
        self._open_change = None
        now = self.clock.monotonic()
        for server in self._servers:
            if server.coming or server.lag_high_s or server.held:
                due = max(server.coming[-1][0] if server.coming else 0.0, now + self._delay_s(server))
                server.coming.append((due, self._number))
                self._arm(server)
            else:
                server.applied = self._number
        for session_id, table in list(self._sessions.items()):
            if self._servers[self._attached[session_id]].applied == self._number:
                table.wake(change.touched)
        self._prune()

    def expire(self, session_id: int) -> None:
        if self._silent:
            self._expiring.append(session_id)
            return
        super().expire(session_id)
        self._attached.pop(session_id, None)

    @property
    def _lags(self) -> bool:
        return any(server.coming or server.lag_high_s or server.held for server in self._servers)

    def _delay_s(self, server: _Server) -> float:
        if not server.lag_high_s:
            return 0.0
        way = self._chance.random()
        if way < PROMPT_SHARE:
            return 0.0
        return self._chance.uniform(0.0, min(SOON_S, server.lag_high_s) if way < PROMPT_SHARE + SOON_SHARE else server.lag_high_s)

    def _remember(self, change: _Change, path: str) -> None:
        """Record the state of a node before the change in progress."""
        if not self._lags:
            return
        if self._open_change is not change:
            self._open_change, self._remembered = change, {}
        if path not in self._remembered:
            self._remembered[path] = self._state(path)

    def _state(self, path: str) -> _State | None:
        node = self._nodes.get(path)
        return None if node is None else _State(node.data, node.stat(), tuple(sorted(node.children)))

    # The servers.

    def _arm(self, server: _Server) -> None:
        if server.timer is None and server.coming and not server.held:
            server.timer = self._call_later(max(0.0, server.coming[0][0] - self.clock.monotonic()), lambda: self._apply(server))

    def _apply(self, server: _Server) -> None:
        """Apply the changes that have reached a server by now."""
        server.timer = None
        if server.held:
            return
        now = self.clock.monotonic()
        tables = [table for session_id, table in self._sessions.items() if self._servers[self._attached[session_id]] is server]
        touched = dict(self._changes)
        while server.coming and server.coming[0][0] <= now + TICK_S:
            _, server.applied = server.coming.popleft()
            for table in tables:
                table.wake(touched[server.applied])
        self._arm(server)
        self._release_answers()
        self._prune()

    def _release_answers(self) -> None:
        """Resolve the held answers whose server has caught up."""
        for server in self._servers:
            waiting, server.waiting = server.waiting, []
            for target, future in waiting:
                if server.applied < target:
                    server.waiting.append((target, future))
                else:
                    resolve(future, None)

    def _prune(self) -> None:
        """Drop the recorded states that every server has applied."""
        least = min(server.applied for server in self._servers)
        while self._changes and self._changes[0][0] <= least:
            _, before = self._changes.popleft()
            for path in before:
                states = self._before[path]
                states.popleft()
                if not states:
                    del self._before[path]

    # Silence.

    @property
    def silent(self) -> bool:
        """Whether the servers are silent."""
        return self._silent

    def begin_silence(self) -> None:
        """Stop all servers from answering."""
        self._silent = True

    def end_silence(self) -> None:
        """End the silence: late changes are applied, then due sessions expire, then waiting operations continue."""
        self._silent = False
        late, self._late = self._late, []
        for make in late:
            make()
        expiring, self._expiring = self._expiring, []
        for session_id in expiring:
            self.expire(session_id)
        unheard, self._waiting = self._waiting, []
        for future in unheard:
            resolve(future, None)

    def wake_session(self, session_id: int) -> None:
        """Wake a session's watches, because its server does not answer and changes may be missed."""
        table = self._sessions.get(session_id)
        if table is not None:
            table.wake_all()

    async def wait_until_answering(self, apply_late: Callable[[], None] | None = None) -> None:
        """Wait until the servers answer.

        Args:
            apply_late: applies the requested change, if it arrives after the timeout.

        Raises:
            ConnectionLost: no answer within `ANSWER_LIMIT_S`.
        """
        if not self._silent:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        timer = self._call_later(ANSWER_LIMIT_S, lambda: resolve(future, None))
        try:
            await future
        finally:
            timer.cancel()
            if future in self._waiting:
                self._waiting.remove(future)
        if self._silent:
            self.unanswered += 1
            if apply_late is not None and self._chance.random() < LATE_SHARE:
                self._late.append(apply_late)
            raise ConnectionLost(f"the metadata store does not answer within {ANSWER_LIMIT_S:g} s (simulated)")


class ReplicatedMemoryTree(MemoryTree):
    """One session with a `ReplicatedMemoryStore`."""

    def __init__(self, store: ReplicatedMemoryStore) -> None:
        super().__init__(store)
        self._replicas = store
        self._closed = False

    async def get(self, path: str) -> tuple[bytes, Stat]:
        check_path(path)
        state = await self._run("get", path, lambda change: self._there(path))
        return state.data, state.stat

    async def exists(self, path: str) -> Stat | None:
        check_path(path)
        state = await self._run("exists", path, lambda change: self._replicas.seen(self.session_id, path))
        return None if state is None else state.stat

    async def children(self, path: str) -> tuple[list[str], Stat]:
        check_path(path)
        state = await self._run("children", path, lambda change: self._there(path))
        return list(state.children), state.stat

    async def close(self) -> None:
        # The client's side ends at once, also during a silence.
        self._closed = True
        self._watches.fail(SessionExpired(f"session {self.session_id} was closed"))
        await super().close()

    def _there(self, path: str) -> _State:
        state = self._replicas.seen(self.session_id, path)
        if state is None:
            raise NoNode(f"{path}: no such node")
        return state

    async def _run(self, name: str, path: str, apply: Callable[[_Change], Result]) -> Result:
        def apply_late() -> None:
            if self.session_id in self._replicas.sessions:
                try:
                    self._applied(apply)
                except (MetadataError, ArgumentError):
                    return  # No caller waits for the refusal.

        if self._closed:
            raise SessionExpired(f"session {self.session_id} was closed")
        try:
            await self._replicas.wait_until_answering(None if name in (*READS, "sync") else apply_late)
            return await super()._run(name, path, apply)
        except ConnectionLost:
            self._replicas.move(self.session_id)
            self._watches.wake_all()
            raise

    async def _answered(self, name: str) -> None:
        if name not in READS:
            await self._replicas.wait_until_applied(self.session_id)
