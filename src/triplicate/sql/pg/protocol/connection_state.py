"""The state of one client's connection, which the parts of its conversation share."""

from __future__ import annotations

import asyncio
from typing import Any

from triplicate.errors import SqlError
from triplicate.runtime import Clock, fail
from triplicate.sql.core.audit import IN_PROCESS, ConnectedClient
from triplicate.sql.core.client_record import ClientRecord
from triplicate.sql.core.interface import Database, Session, TransactionStatus
from triplicate.sql.pg.protocol.listening import Listening
from triplicate.sql.pg.protocol.message_stream import MessageStream
from triplicate.sql.pg.protocol.plans import PlanCache
from triplicate.sql.pg.protocol.prepared_statements import Portal, PreparedStatement
from triplicate.sql.pg.protocol.protocol_state import STATEMENTS_MAX, ProtocolState
from triplicate.sql.pg.protocol.settings import SessionSettings
from triplicate.sql.pg.protocol.transaction_time import TransactionTime


class ConnectionState(ProtocolState[PreparedStatement, Portal]):
    """A connection's state in the protocol, and the objects that its messages are served with.

    Args:
        stream: the connection, past its start-up packet.
        database: to which the client is connected. session: the client's.
        settings: from the start-up packet.
        clock: for statement_timeout and the times of transactions.
        plans: of the database's statements; shared by its connections.
        statements_max: bounds the prepared statements, and the portals.
        client: as the session knows it.
    """

    def __init__(
        self,
        stream: MessageStream,
        database: Database,
        session: Session,
        settings: SessionSettings,
        clock: Clock,
        plans: PlanCache,
        statements_max: int = STATEMENTS_MAX,
        client: ConnectedClient = IN_PROCESS,
    ) -> None:
        super().__init__(statements_max)
        self.stream = stream
        self.database = database
        self.session = session
        self.settings = settings
        self.clock = clock
        self.plans = plans
        self.time = TransactionTime(clock)
        self.listening = Listening(database, session)
        self.record = ClientRecord(session, client, lambda: settings.get("application_name", is_leader=False), clock.monotonic())
        self.record.transaction_us = lambda: self.time.began_us
        self.interrupted: asyncio.Future[Any] | None = None
        """Failed by an interrupt, while the connection waits for something else than its engine."""

    @property
    def is_between_transactions(self) -> bool:
        """Whether the client waits for nothing, so that it may get notifications."""
        is_idle = self.session.status is TransactionStatus.IDLE and not self.is_implicit
        return is_idle and not (self.portals or self.is_skipping or self.is_busy)

    def interrupt(self) -> None:
        """Interrupt what the connection runs, or waits for, which fails with 57014."""
        self.session.cancel()
        if self.interrupted is not None:
            fail(self.interrupted, SqlError("57014", "canceling statement due to user request"))

    def users(self) -> tuple[str, ...]:
        """The names that statements are supplied with, by `SessionName`."""
        roles, connected = self.session.roles, self.settings.user
        return roles.current_user or connected, roles.session_user or connected, roles.acting or "", roles.session_role or ""

    async def close_portals(self, *, but: Portal | None = None, since: int = 0) -> None:
        """Close every portal within this savepoint, or every one, except `but`."""
        for name, portal in list(self.portals.items()):
            if portal is not but and portal.savepoint >= since:
                del self.portals[name]
                if portal.has_more:
                    await portal.close()

    async def end_turn(self) -> None:
        """Let the other connections be served before a further message that has arrived."""
        if self.stream.peek() is not None:
            await asyncio.sleep(0)
        self.begin_turn()
