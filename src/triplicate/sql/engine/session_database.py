"""The part of a database that its sessions use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from triplicate.config.node_settings import NodeSettings
from triplicate.errors import SqlError
from triplicate.runtime import Clock
from triplicate.sql.core.interface import Session
from triplicate.sql.engine.copy_progress import CopyProgress
from triplicate.sql.engine.database_roles import DatabaseRoles
from triplicate.sql.engine.interactive_transaction import InteractiveTransaction
from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.executor.interrupts import StopFlag
from triplicate.sql.executor.reader_pool import ReaderCheckout, ReaderPool
from triplicate.sql.executor.writer_connection import WriterConnection

Facts = TypeVar("Facts")


class SessionDatabase(Protocol):
    """The part of a database that its sessions use."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> NodeSettings: ...

    @property
    def pool(self) -> ReaderPool: ...

    @property
    def leadership(self) -> Leadership | None: ...

    @property
    def leader_hint(self) -> str | None: ...

    @property
    def schema_version(self) -> int: ...

    @property
    def roles(self) -> DatabaseRoles: ...

    @property
    def as_of(self) -> int | None:
        """The position at which its sessions read it as it was; None in the present."""

    @property
    def present(self) -> SessionDatabase:
        """The database as it is."""

    async def past(self, point: str) -> SessionDatabase:
        """The database as it was at a point, for one session. Raises SqlError."""

    def leave(self) -> None:
        """A session does not read it as it was any more."""

    @property
    def progress(self) -> CopyProgress: ...

    @property
    def clock(self) -> Clock: ...

    def forget(self, session: Session) -> None: ...


@dataclass(frozen=True, slots=True)
class HeldWriter:
    """The writer, as a session's open transaction holds it."""

    transaction: InteractiveTransaction
    leadership: Leadership

    @property
    def writer(self) -> WriterConnection:
        return self.leadership.writer

    def restart_savepoint(self, name: str) -> None:
        """ROLLBACK TO where nothing has changed since. SQLite's ends the open results if the transaction has changed the schema before."""
        self.writer.release(name)
        self.writer.savepoint(name)


def required_leadership(database: SessionDatabase, tag: str) -> Leadership:
    """The leadership of this node. Raises SqlError 25006 where it follows."""
    leadership = database.leadership
    if database.as_of is not None:
        raise SqlError(
            "25006",
            f"cannot execute {tag}: this session reads the database as it was at position {database.as_of}",
            hint="RESET triplicate.as_of leads back to the present.",
        )
    if leadership is None:
        leader = database.leader_hint
        raise SqlError(
            "25006",
            f"cannot execute {tag} on this node: it follows and is read-only",
            hint=f"The leader is at {leader}." if leader else "No leader is known at the moment; try again.",
        )
    return leadership


async def unless_stopped(stop: StopFlag, work: Awaitable[Facts]) -> Facts:
    """The result of work that nothing interrupts. Raises the reason of the stop that it was given meanwhile."""
    found = await work
    if stop.reason is not None:
        raise stop.reason
    return found


async def table_facts(
    held: HeldWriter | None, checkout: ReaderCheckout | None, written: Any, read: Any, examined: Callable[[], Awaitable[Facts]], table: str
) -> Facts:
    """Facts of a table as the next statement sees it: by the writer that the session holds, by its reader, or by the examiner."""
    facts: Facts
    if held is not None and not held.transaction.over:
        facts = await held.transaction.run(held.writer.query, written, table)
    elif checkout is not None:
        facts = await checkout.run(read, checkout.reader, table)
    else:
        facts = await examined()
    return facts
