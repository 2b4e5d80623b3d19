"""What a session uses of its database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from triplicate.config.node_settings import NodeSettings
from triplicate.errors import SqlError
from triplicate.sql.core.access_rights import AccessRights
from triplicate.sql.core.audit import AuditEvent
from triplicate.sql.core.interface import Session
from triplicate.sql.engine.interactive_transaction import InteractiveTransaction
from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.executor.reader_pool import ReaderPool
from triplicate.sql.executor.writer_connection import WriterConnection


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
    def access(self) -> AccessRights:
        """The roles and rights at the database's position."""

    @property
    def allowed(self) -> set[tuple[str, str]]:
        """The (role, statement) that were found to be allowed, by this schema and these rights."""

    def is_administrator(self, name: str) -> bool:
        """Whether this is the name of the administrator in the list of databases."""

    def new_salt(self) -> bytes:
        """Random bytes for a verifier."""

    def audit(self, event: AuditEvent, facts: Mapping[str, object]) -> None: ...

    def forget(self, session: Session) -> None: ...


@dataclass(frozen=True, slots=True)
class HeldWriter:
    """The writer, as a session's open transaction holds it."""

    transaction: InteractiveTransaction
    leadership: Leadership

    @property
    def writer(self) -> WriterConnection:
        return self.leadership.writer


def required_leadership(database: SessionDatabase, tag: str) -> Leadership:
    """The leadership of this node. Raises SqlError 25006 where it follows."""
    leadership = database.leadership
    if leadership is None:
        leader = database.leader_hint
        raise SqlError(
            "25006",
            f"cannot execute {tag} on this node: it follows and is read-only",
            hint=f"The leader is at {leader}." if leader else "No leader is known at the moment; try again.",
        )
    return leadership
