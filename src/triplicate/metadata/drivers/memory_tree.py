"""The metadata tree in memory. It defines the semantics for the other drivers, and serves the simulator and tests.

It is deterministic: no sets, no clock but the given one, waiters woken in order of arrival. A fault hook can delay an operation, lose the
connection before or after it is applied, or expire the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from triplicate.errors import ArgumentError, BadVersion, MetadataError, NodeExists, NoNode, NotEmpty, SessionExpired
from triplicate.metadata.core.paths import ancestors_of, check_data, check_path, name_of, parent_of, sequence_suffix
from triplicate.metadata.core.tree import ANY_VERSION, CheckVersion, CreateNode, DeleteNode, SetData, Stat, TreeOperation
from triplicate.metadata.drivers.watches import LocalWatch, WatchTable
from triplicate.runtime import Clock, sleep

Result = TypeVar("Result")


@dataclass(slots=True)
class InjectedFault:
    """A fault injected into one operation.

    The operation can be delayed before and after it is applied. An error can replace it or follow it. The session can expire before it.
    """

    delay_before_s: float = 0.0
    raise_before: Exception | None = None
    expire: bool = False
    delay_after_s: float = 0.0
    raise_after: Exception | None = None


FaultHook = Callable[[int, str, str], InjectedFault | None]
"""Called with the session's id, the name of the `Tree` method, and the path (the first one of a multi)."""


@dataclass(slots=True)
class _Node:
    data: bytes
    owner: int
    ctime_ms: int
    mtime_ms: int
    version: int = 0
    created_children: int = 0
    deleted_children: int = 0
    children: dict[str, None] = field(default_factory=dict)

    def stat(self) -> Stat:
        return Stat(self.version, self.created_children + self.deleted_children, self.ctime_ms, self.mtime_ms, self.owner)


class _Change:
    """The effects of one operation: how to undo them, and the touched paths, whose watches wake at the commit."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], None]] = []
        self.touched: dict[str, None] = {}

    def roll_back(self) -> None:
        for step in reversed(self.undo):
            step()


class MemoryStore:
    """The tree and its sessions. All methods are synchronous and take effect at once; `MemoryTree` adds delays and faults."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.fault: FaultHook | None = None
        """Called before every operation of every session; None injects no faults."""
        self.observer: Callable[[Sequence[str]], None] | None = None
        """Called at each commit with the paths that were created, changed or deleted."""
        self._nodes: dict[str, _Node] = {"/": _Node(b"", 0, 0, 0)}
        self._sessions: dict[int, WatchTable] = {}
        self._session_count = 0

    def open_session(self) -> tuple[int, WatchTable]:
        """Begin a session; returns its id and the table of its watches."""
        self._session_count += 1
        table = self._sessions[self._session_count] = WatchTable()
        return self._session_count, table

    @property
    def sessions(self) -> list[int]:
        """Ids of the live sessions, oldest first."""
        return list(self._sessions)

    def expire(self, session_id: int) -> None:
        """End a session as if its owner had died: its ephemeral nodes are deleted, its watches and operations raise SessionExpired."""
        table = self._sessions.pop(session_id, None)
        if table is None:
            return
        change = _Change()
        for path in [path for path, node in self._nodes.items() if node.owner == session_id]:
            self.delete(path, ANY_VERSION, change)
        table.fail(SessionExpired(f"session {session_id} is over"))
        self.commit(change)

    def require_session(self, session_id: int) -> None:
        if session_id not in self._sessions:
            raise SessionExpired(f"session {session_id} is over")

    def dump(self) -> dict[str, tuple[bytes, Stat]]:
        """Every node by path, sorted; for tests and checkers."""
        return {path: (node.data, node.stat()) for path, node in sorted(self._nodes.items())}

    def get(self, path: str) -> tuple[bytes, Stat]:
        node = self._node(path)
        return node.data, node.stat()

    def exists(self, path: str) -> Stat | None:
        node = self._nodes.get(path)
        return None if node is None else node.stat()

    def children(self, path: str) -> tuple[list[str], Stat]:
        node = self._node(path)
        return sorted(node.children), node.stat()

    def create(self, path: str, data: bytes, owner: int, change: _Change, *, sequential: bool = False, parents: bool = False) -> str:
        if parents:
            for ancestor in ancestors_of(path):
                if ancestor not in self._nodes:
                    self._insert(ancestor, b"", 0, change)
        if sequential:
            path += sequence_suffix(self._node(parent_of(path)).created_children)
        self._insert(path, data, owner, change)
        return path

    def set(self, path: str, data: bytes, version: int, change: _Change) -> Stat:
        node = self._checked(path, version)
        before = (node.data, node.version, node.mtime_ms)

        def undo() -> None:
            node.data, node.version, node.mtime_ms = before

        node.data = data
        node.version += 1
        node.mtime_ms = self._now_ms()
        change.undo.append(undo)
        change.touched[path] = None
        return node.stat()

    def delete(self, path: str, version: int, change: _Change) -> None:
        if path == "/":
            raise ArgumentError("/: the root cannot be deleted")
        node = self._checked(path, version)
        if node.children:
            raise NotEmpty(f"{path}: has {len(node.children)} children")
        name, parent = name_of(path), self._nodes[parent_of(path)]

        def undo() -> None:
            self._nodes[path] = node
            parent.children[name] = None
            parent.deleted_children -= 1

        del self._nodes[path]
        del parent.children[name]
        parent.deleted_children += 1
        change.undo.append(undo)
        change.touched[path] = None
        change.touched[parent_of(path)] = None

    def check(self, path: str, version: int) -> None:
        self._checked(path, version)

    def commit(self, change: _Change) -> None:
        """Notify the observer, and wake every session's watches on the touched paths."""
        if self.observer is not None and change.touched:
            self.observer(list(change.touched))
        for table in list(self._sessions.values()):
            table.wake(change.touched)

    def _insert(self, path: str, data: bytes, owner: int, change: _Change) -> None:
        if path in self._nodes:
            raise NodeExists(f"{path}: exists already")
        parent_path, name = parent_of(path), name_of(path)
        parent = self._node(parent_path)
        if parent.owner:
            raise MetadataError(f"{path}: {parent_path} is ephemeral and can have no children")
        now_ms = self._now_ms()

        def undo() -> None:
            del self._nodes[path]
            del parent.children[name]
            parent.created_children -= 1

        self._nodes[path] = _Node(data, owner, now_ms, now_ms)
        parent.children[name] = None
        parent.created_children += 1
        change.undo.append(undo)
        change.touched[path] = None
        change.touched[parent_path] = None

    def _node(self, path: str) -> _Node:
        node = self._nodes.get(path)
        if node is None:
            raise NoNode(f"{path}: no such node")
        return node

    def _checked(self, path: str, version: int) -> _Node:
        node = self._node(path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersion(f"{path}: version {node.version}, expected {version}")
        return node

    def _now_ms(self) -> int:
        return self.clock.wall_us() // 1000


class MemoryTree:
    """One session with a `MemoryStore`. Its operations are applied one after another, as over a connection."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._session_id, self._watches = store.open_session()
        self._turn = asyncio.Lock()

    @property
    def session_id(self) -> int:
        return self._session_id

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False, parents: bool = False
    ) -> str:
        check_path(path + "0" if sequential else path)
        check_data(path, data)
        owner = self._session_id if ephemeral else 0

        def apply(change: _Change) -> str:
            return self._store.create(path, data, owner, change, sequential=sequential, parents=parents)

        return await self._run("create", path, apply)

    async def get(self, path: str) -> tuple[bytes, Stat]:
        check_path(path)
        return await self._run("get", path, lambda change: self._store.get(path))

    async def exists(self, path: str) -> Stat | None:
        check_path(path)
        return await self._run("exists", path, lambda change: self._store.exists(path))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        check_path(path)
        check_data(path, data)
        return await self._run("set", path, lambda change: self._store.set(path, data, version, change))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        check_path(path)
        await self._run("delete", path, lambda change: self._store.delete(path, version, change))

    async def children(self, path: str) -> tuple[list[str], Stat]:
        check_path(path)
        return await self._run("children", path, lambda change: self._store.children(path))

    async def multi(self, operations: Sequence[TreeOperation]) -> None:
        for operation in operations:
            check_path(operation.path)
            if isinstance(operation, CreateNode | SetData):
                check_data(operation.path, operation.data)

        def apply(change: _Change) -> None:
            for operation in operations:
                self._apply(operation, change)

        await self._run("multi", operations[0].path if operations else "/", apply)

    async def sync(self, path: str) -> None:
        check_path(path)
        await self._run("sync", path, lambda change: None)

    def watch(self, path: str) -> LocalWatch:
        return self._watches.add(check_path(path))

    async def close(self) -> None:
        self._store.expire(self._session_id)

    def _apply(self, operation: TreeOperation, change: _Change) -> None:
        match operation:
            case CreateNode():
                self._store.create(operation.path, operation.data, self._session_id if operation.ephemeral else 0, change)
            case SetData():
                self._store.set(operation.path, operation.data, operation.version, change)
            case DeleteNode():
                self._store.delete(operation.path, operation.version, change)
            case CheckVersion():
                self._store.check(operation.path, operation.version)

    async def _run(self, name: str, path: str, apply: Callable[[_Change], Result]) -> Result:
        async with self._turn:
            self._store.require_session(self._session_id)
            fault = (self._store.fault(self._session_id, name, path) if self._store.fault is not None else None) or InjectedFault()
            # Even without a fault other tasks run before and after, as if the store were another process.
            await sleep(self._store.clock, fault.delay_before_s)
            if fault.expire:
                self._store.expire(self._session_id)
            if fault.raise_before is not None:
                raise fault.raise_before
            self._store.require_session(self._session_id)
            try:
                try:
                    return self._applied(apply)
                finally:
                    # A connection may be lost before the session's server has applied the change: later reads may not show it.
                    if fault.raise_after is None:
                        await self._answered(name)
            finally:
                # The answer, a result or an error, can be delayed or lost.
                await sleep(self._store.clock, fault.delay_after_s)
                if fault.raise_after is not None:
                    # The connection is lost: all watches must wake.
                    self._watches.wake_all()
                    raise fault.raise_after

    async def _answered(self, name: str) -> None:
        """Called after an operation was applied or refused; returns when the answer may be sent."""

    def _applied(self, apply: Callable[[_Change], Result]) -> Result:
        change = _Change()
        try:
            result = apply(change)
        except (MetadataError, ArgumentError):
            change.roll_back()
            raise
        self._store.commit(change)
        return result
