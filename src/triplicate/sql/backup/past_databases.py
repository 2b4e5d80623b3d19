"""Databases as they were, for the sessions of a node that read the past: copies in a folder of the node, shared and bounded.

A copy is built by a task on a worker's thread, and goes on to be built when the session that has asked for it gives up. It stays while
sessions read it, and after that until another one needs its room, or the node ends.
"""

from __future__ import annotations

import asyncio
import os.path
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

from triplicate.config.node_settings import NodeSettings
from triplicate.errors import ArgumentError, NotKept, SqlError, TriplicateError
from triplicate.log import Logs
from triplicate.runtime import Clock, Host, TaskScope, deadline_after, shielded, timeout_at
from triplicate.sql.backup.core.target import AtPosition, AtTime, Target, parse_target
from triplicate.sql.backup.past_copy import DatabaseLog, NearCopy, PastCopies
from triplicate.sql.backup.relation_names import RelationNames, present_names
from triplicate.sql.core.access_rights import ADMINISTRATOR, AccessRights, Refusal
from triplicate.sql.core.interface import Session
from triplicate.sql.core.rights import Right
from triplicate.sql.engine.copy_progress import CopyProgress
from triplicate.sql.engine.database_roles import DatabaseRoles
from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.engine.read_place import ReadPlace
from triplicate.sql.engine.session_database import SessionDatabase
from triplicate.sql.executor.reader_pool import ReaderPool, ReadLimits
from triplicate.sql.executor.threads import WorkerThreads
from triplicate.sql.storage.access_tables import load_access_rights
from triplicate.sql.storage.sqlite_copy import delete_file, on_disk
from triplicate.sql.storage.sqlite_file import ConnectionSetup, open_reader, read_state

Result = TypeVar("Result")
FindNames = Callable[[RelationNames], Awaitable[RelationNames]]

FOLDER = "past"
"""In a node's directory."""


class PastAccess(AccessRights):
    """The rights to a database as it was: what a role may read now, and might read then.

    Names alone do not suffice. A table may have had the name then that another one has now, and a right may have been taken since.

    Args:
        names: of the relations now; None while they are not known, which refuses every right.
    """

    def __init__(self, present: AccessRights, past: AccessRights, names: RelationNames | None) -> None:
        super().__init__(present.roles.values(), present.members, present.grants, present.owners)
        self._past = past
        self._names = names

    @cached_property
    def owners_are_superusers(self) -> bool:
        """True: superusers read all of the past, also relations whose owners and names are gone. Nothing acts in a read."""
        return True

    def refusal(self, role: str | None, rights: Iterable[Right]) -> Refusal | None:
        needed = sorted(rights, key=lambda right: (right.definer, right.relation, right.action.name))
        for right in needed:
            now = None if self._names is None else (self._names.now(right.relation), self._names.now(right.definer))
            if now is None or None in now:
                return Refusal(role or ADMINISTRATOR, right)
            refused = super().refusal(role, [right._replace(relation=now[0] or "", definer=now[1] or "")])
            if refused is not None:
                return Refusal(refused.role, right)
        return self._past.refusal(role, needed)


class _Facts(NamedTuple):
    """The facts that a finished file has."""

    time_ms: int
    """The log's time at its position."""
    schema_version: int
    access: AccessRights
    size_bytes: int


@dataclass(slots=True)
class _SharedCopy:
    """A database as it was, which several sessions may read."""

    position: int
    pool: ReaderPool
    facts: _Facts
    names: RelationNames
    """The present names of its relations, as far as they are known."""
    readers: set[PastDatabase] = field(default_factory=set)
    """One for each session that reads it."""


class PastDatabase:
    """A database as it was, for one session. Implements `SessionDatabase`.

    Args:
        names: finds the present names of its relations, from those that are known.
    """

    def __init__(self, host: Host, present: SessionDatabase, copy: _SharedCopy, names: FindNames) -> None:
        self.as_of: int | None = copy.position
        self.schema_version = copy.facts.schema_version
        self.pool = copy.pool
        self.leadership: Leadership | None = None
        self.leader_hint: str | None = None
        self._copy = copy
        self._present = present
        self._find_names = names
        self._known: tuple[AccessRights, int, RelationNames] | None = None
        """That `roles` was made of: the present rights, the present version of the schema, and the names."""
        self._roles = DatabaseRoles(host, present.name)
        self._roles.find_administrator = present.roles.find_administrator
        self._roles.catch_up = self._catch_up
        copy.readers.add(self)

    @property
    def name(self) -> str:
        return self._present.name

    @property
    def settings(self) -> NodeSettings:
        return self._present.settings

    @property
    def present(self) -> SessionDatabase:
        return self._present

    @property
    def progress(self) -> CopyProgress:
        return self._present.progress

    @property
    def clock(self) -> Clock:
        return self._present.clock

    @property
    def roles(self) -> DatabaseRoles:
        access, version, names = known = self._present.roles.access, self._present.schema_version, self._copy.names
        if known != self._known:
            self._known = known
            is_known = names.version >= version
            self._roles.moved(self.schema_version, PastAccess(access, self._copy.facts.access, names if is_known else None))
        return self._roles

    async def _catch_up(self) -> None:
        """Learn the present rights, and the present names of the relations.

        Raises:
            SqlError: 55000, 58030, the log cannot be read, or there are too many changes.
        """
        if self._present.roles.catch_up is not None:
            await self._present.roles.catch_up()
        if self._copy.names.version < self._present.schema_version:
            try:
                self._copy.names = await self._find_names(self._copy.names)
            except NotKept as error:
                raise SqlError("55000", f"the rights to the past cannot be known: {error}") from None
            except TriplicateError as error:
                raise _unreachable(error) from error

    async def past(self, point: str) -> SessionDatabase:
        return await self._present.past(point)

    def leave(self) -> None:
        self._copy.readers.discard(self)

    def forget(self, session: Session) -> None:
        self.leave()
        self._present.forget(session)


@dataclass(slots=True, eq=False)
class _Entry:
    """One copy: while it is built, and then.

    Args:
        identity: of the database. target: the position that was asked for.
    """

    identity: bytes
    target: AtPosition
    path: str
    building: asyncio.Task[_SharedCopy | SqlError]
    waiters: int = 0
    used: int = 0
    """When a session took it last, as a count of such takings."""

    @property
    def copy(self) -> _SharedCopy | None:
        if not self.building.done() or self.building.cancelled():
            return None
        result = self.building.result()
        return result if isinstance(result, _SharedCopy) else None

    def serves(self, identity: bytes, target: AtPosition) -> bool:
        """Whether it is, or will be, a copy for a position of a database."""
        found = self.copy
        made = self.target if found is None else AtPosition(found.position)
        if identity != self.identity or made.position < target.position:
            return False
        return target.or_later or made == target

    @property
    def is_idle(self) -> bool:
        """Whether neither a session nor a task needs it."""
        found = self.copy
        return self.building.done() and not self.waiters and (found is None or not found.readers)


class PastDatabases:
    """The copies of one node.

    Args:
        setup, threads: as for the databases of the node.
    """

    def __init__(self, host: Host, logs: Logs, settings: NodeSettings, setup: ConnectionSetup | None, threads: WorkerThreads) -> None:
        self._host = host
        self._logs = logs
        self._settings = settings
        self._setup = setup
        self._threads = threads
        self._folder = os.path.join(settings.directory, FOLDER)
        self._entries: list[_Entry] = []
        self._scope = TaskScope("past databases")
        self._turn = asyncio.Lock()
        """One copy is built, or deleted, at a time."""
        self._takings = 0
        self._numbers = 0

    @property
    def positions(self) -> Mapping[int, int]:
        """The copies that are there, by position, with the number of their sessions."""
        copies = [(entry.target.position, entry.copy) for entry in self._entries]
        return {asked if found is None else found.position: 0 if found is None else len(found.readers) for asked, found in copies}

    async def begin(self) -> None:
        """Delete what an earlier process has left in the folder."""
        if self._host.disk.exists(self._folder):
            await self._on_worker(self._clear)

    async def close(self) -> None:
        """Delete all copies. No session may read one."""
        await self._scope.aclose()
        while self._entries:
            await self._remove(self._entries[0])
        await self.begin()

    def _clear(self) -> None:
        for name in self._host.disk.names(self._folder):
            self._host.disk.delete(os.path.join(self._folder, name))

    async def open(self, source: DatabaseLog, present: SessionDatabase, point: str, near: NearCopy | None = None) -> PastDatabase:
        """The database as it was, for one session, which calls `leave` or `forget` at its end. A call that is cancelled leaves a
        copy that is being built to go on.

        Args:
            point: as `parse_target` reads it.
            near: this node's copy of the database.

        Raises:
            SqlError: 22023, it names no point; 55000, it is not kept, with the oldest that is; 53400, there are as many copies as may be,
                and all are read; 55P03, the copy is not ready in time, and goes on to be built; 0A000, the node has no copies of the past.
        """
        if not self._settings.past_copies:
            raise SqlError("0A000", "this node does not read the past", hint="Raise node.past_copies, or use another node.")
        past = PastCopies(self._host, self._logs, source, self._setup, near)
        try:
            target = parse_target(point)
            position = AtPosition(await past.resolve(target), isinstance(target, AtPosition) and target.or_later)
        except ArgumentError as error:
            raise SqlError("22023", f"invalid point in the past: {error}") from None
        except NotKept as error:
            raise SqlError("55000", str(error)) from None
        except TriplicateError as error:
            raise _unreachable(error) from error
        while (entry := self._find(source.identity, position)) is None:
            await self._make_room()
            if self._find(source.identity, position) is None:
                self._numbers += 1
                path = os.path.join(self._folder, f"{self._numbers}-{position.position}.db")
                building = self._scope.spawn(self._built(past, source.name, position, path), name="past copy")
                self._entries.append(_Entry(source.identity, position, path, building))
        copy = await self._wait(entry)
        if _begins_after(copy.facts, target):
            raise await self._not_kept(past, source.name, target)
        return PastDatabase(self._host, present, copy, lambda names: present_names(self._logs, source.log, past, names))

    def _find(self, identity: bytes, target: AtPosition) -> _Entry | None:
        return next((entry for entry in self._entries if entry.serves(identity, target)), None)

    async def _not_kept(self, past: PastCopies, name: str, target: Target) -> SqlError:
        try:
            return SqlError("55000", str((await past.kept()).not_kept(name, target)))
        except TriplicateError as error:
            return _unreachable(error)

    async def _wait(self, entry: _Entry) -> _SharedCopy:
        self._takings += 1
        entry.used = self._takings
        entry.waiters += 1
        wait_s = self._settings.past_copy_wait_s
        try:
            async with timeout_at(deadline_after(self._host.clock, wait_s)):
                await asyncio.wait([entry.building])
        except TimeoutError:
            message = f"the database as it was at {entry.target} is not ready within {wait_s:g} s"
            raise SqlError("55P03", message, hint="It is being built; try again.") from None
        finally:
            entry.waiters -= 1
        result = entry.building.result()
        if isinstance(result, SqlError):
            if entry in self._entries:
                self._entries.remove(entry)  # Its file is deleted already.
            raise result
        return result

    async def _built(self, past: PastCopies, name: str, position: AtPosition, path: str) -> _SharedCopy | SqlError:
        try:
            return await self._build(past, name, position, path)
        except NotKept as error:
            return SqlError("55000", str(error))
        except TriplicateError as error:
            return _unreachable(error)
        except Exception as error:  # noqa: BLE001  a defect met by one copy must not end the others; the client sees it
            self._host.trace("sql.past_copy_failed", database=name, position=position.position, error=repr(error))
            return SqlError("XX000", f"the database as it was at {position} cannot be built: {error!r}")

    async def _build(self, past: PastCopies, name: str, position: AtPosition, path: str) -> _SharedCopy:
        async with self._turn:
            self._host.disk.mkdir(self._folder)
            made = await past.make(position, path)
            facts: _Facts = await self._on_worker(self._facts, path, made.time_ms)
            others = [entry.copy for entry in self._entries]
            size_bytes = facts.size_bytes + sum(one.facts.size_bytes for one in others if one is not None)
            if size_bytes > self._settings.past_copies_bytes and not await self._free(size_bytes - self._settings.past_copies_bytes):
                await self._on_worker(delete_file, self._host, path)
                raise NotKept(
                    f"the copies of databases as they were would have {size_bytes} bytes; this node may use "
                    f"{self._settings.past_copies_bytes} (node.past_copies_bytes)"
                )
            settings = self._settings
            limits = ReadLimits(
                settings.reader_connections,
                settings.reader_threads,
                settings.reader_wait_s,
                settings.read_idle_s,
                settings.snapshot_limit_s,
            )
            place = ReadPlace(settings.node_id, lambda: self._age_s(facts))
            pool = ReaderPool(self._host, f"{name}-{made.position}", path, limits, setup=place.setup(self._setup), threads=self._threads)
            self._host.trace("sql.past_copy", database=name, position=made.position, size_bytes=facts.size_bytes)
            return _SharedCopy(made.position, pool, facts, RelationNames(made.position, facts.schema_version))

    def _age_s(self, facts: _Facts) -> float | None:
        """How long ago the database was as in a copy, in seconds, by the clocks of the leader of then and of this node."""
        return max(0.0, self._host.clock.wall_us() / 1e6 - facts.time_ms / 1000) if facts.time_ms else None

    def _facts(self, path: str, time_ms: int) -> _Facts:
        connection = open_reader(path, self._setup)
        try:
            size_bytes = int(connection.pragma("page_count")) * int(connection.pragma("page_size"))
            return _Facts(time_ms, read_state(connection).schema_version, load_access_rights(connection), size_bytes)
        finally:
            connection.close(True)

    async def _make_room(self) -> None:
        """Delete the copy that was not read for longest, if there are as many as may be. Raises SqlError: all are read."""
        while len(self._entries) >= self._settings.past_copies:
            oldest = self._oldest_idle()
            if oldest is None:
                raise SqlError(
                    "53400",
                    f"this node holds {len(self._entries)} copies of databases as they were, which is its limit, and all are read",
                    hint="RESET triplicate.as_of in sessions that do not need it, or raise node.past_copies.",
                )
            await self._remove(oldest)

    async def _free(self, size_bytes: int) -> bool:
        """Delete copies that nobody reads until this number of bytes is free; whether that was possible."""
        while size_bytes > 0:
            oldest = self._oldest_idle()
            if oldest is None:
                return False
            size_bytes -= 0 if oldest.copy is None else oldest.copy.facts.size_bytes
            await self._remove(oldest)
        return True

    def _oldest_idle(self) -> _Entry | None:
        return min((entry for entry in self._entries if entry.is_idle), key=lambda entry: entry.used, default=None)

    async def _remove(self, entry: _Entry) -> None:
        self._entries.remove(entry)
        await shielded(self._delete(entry))

    async def _delete(self, entry: _Entry) -> None:
        found = entry.copy
        if found is not None:
            await found.pool.close()
        try:
            await self._on_worker(delete_file, self._host, entry.path)
        except TriplicateError as error:
            self._host.trace("sql.leftover", file=os.path.basename(entry.path), error=repr(error))

    async def _on_worker(self, function: Callable[..., Result], *arguments: object) -> Result:
        worker = self._host.new_worker("sql-past")
        try:
            return await on_disk(worker, function, *arguments)
        finally:
            await shielded(worker.close())


def _begins_after(facts: _Facts, target: Target) -> bool:
    """Whether a copy is younger than the time that it was made for. A time before the oldest snapshot leads to that snapshot."""
    return isinstance(target, AtTime) and facts.time_ms > target.time_ms


def _unreachable(error: TriplicateError) -> SqlError:
    return SqlError("58030", f"the past of the database cannot be read: {error}", hint="Try again, or use another node.")
