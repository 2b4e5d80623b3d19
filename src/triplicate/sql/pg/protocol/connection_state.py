"""The state of one client's connection, which the parts of its conversation share."""

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
"""Limit on the prepared statements of one session, and on its portals."""


@dataclass(slots=True)
class ConnectionState:
    """A connection's session, prepared statements and portals, and its state in the protocol.

    Args:
        stream: the connection, past its start-up packet.
        database: to which the client is connected. session: the client's.
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
    """Whether the server began the open transaction, which ends with this query or at Sync."""
    is_busy: bool = False
    """Whether a message is being served."""
    is_cancelled: bool = False
    """Whether the message being served was cancelled. Sending of a read's rows stops then, even if the engine has already returned them."""

    def __post_init__(self) -> None:
        self.time = TransactionTime(self.clock)

    async def close_portals(self, *, but: Portal | None = None) -> None:
        """Close every portal except `but`."""
        for name, portal in list(self.portals.items()):
            if portal is not but:
                del self.portals[name]
                if portal.cursor is not None:
                    await portal.cursor.close()
