"""The state of one client's connection, shared by the parts of its conversation."""

from __future__ import annotations

from dataclasses import dataclass, field

from triplicate.runtime import Clock
from triplicate.sql.core.interface import Database, Session
from triplicate.sql.pg.protocol.message_stream import MessageStream
from triplicate.sql.pg.protocol.plans import PlanCache
from triplicate.sql.pg.protocol.prepared_statements import Portal, PreparedStatement
from triplicate.sql.pg.protocol.settings import SessionSettings
from triplicate.sql.pg.protocol.transaction_time import TransactionTime

STATEMENTS_MAX = 10_000
"""Prepared statements, and portals, that one session may hold."""


@dataclass(slots=True)
class ConnectionState:
    """The parts of a connection, its prepared statements and portals, and its place in the protocol.

    Args:
        stream: the connection, past its start-up packet.
        database: the one that the client connected to. session: opened for the client.
        settings: from the start-up packet.
        clock: for statement_timeout and the times of transactions.
        plans: of the database's statements; shared by its connections.
        statements_max: bounds the prepared statements, and the portals.
    """

    stream: MessageStream
    database: Database
    session: Session
    settings: SessionSettings
    clock: Clock
    plans: PlanCache = field(default_factory=PlanCache)
    statements_max: int = STATEMENTS_MAX
    time: TransactionTime = field(init=False)
    statements: dict[str, PreparedStatement] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    is_implicit: bool = False
    """The server began the open transaction, which ends with this query or at Sync."""
    is_busy: bool = False
    """A message is being served."""
    is_cancelled: bool = False
    """The message being served was cancelled. Rows of a read stop also where the engine has ended and only the client is slow to read."""

    def __post_init__(self) -> None:
        self.time = TransactionTime(self.clock)

    async def close_portals(self, *, but: Portal | None = None) -> None:
        """Close every portal but one."""
        for name, portal in list(self.portals.items()):
            if portal is not but:
                del self.portals[name]
                if portal.cursor is not None:
                    await portal.cursor.close()
