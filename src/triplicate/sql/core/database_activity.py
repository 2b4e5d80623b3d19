"""The listeners, sessions and statements of one copy of a database on a node. Pure."""

from __future__ import annotations

from collections.abc import Container
from typing import Protocol

from triplicate.errors import SqlError
from triplicate.sql.core.client_record import ClientRecord
from triplicate.sql.core.commit_notices import CommitNotices
from triplicate.sql.core.live_rows import LiveSource
from triplicate.sql.core.statement_statistics import StatementStatistics


class EndedSession(Protocol):
    """A session that the node may end."""

    @property
    def stored_role(self) -> str | None:
        """The role of the database that logged in; None for the administrator, and without authentication."""

    def end(self, reason: SqlError) -> None:
        """End the session with an error for its client."""


class DatabaseActivity:
    """Shared by the sessions of one copy. A restart of the node begins with an empty one."""

    def __init__(self) -> None:
        self.notices = CommitNotices()
        self.sources: dict[str, LiveSource] = {}
        """Makes the rows of live tables, by their names."""
        self.statements = StatementStatistics()
        self.clients: dict[int, ClientRecord] = {}
        """The connected clients by their process ids. Those of sessions in this process are negative."""
        self._in_process = 0
        """Sessions of this process so far."""
        self._open: dict[int, EndedSession] = {}
        """The open sessions, by their identities."""

    def live_source(self, table: str) -> LiveSource:
        """The source of a live table's rows. Raises SqlError 0A000: this database has none."""
        source = self.sources.get(table)
        if source is None:
            raise SqlError("0A000", f"{table} is not available on this node")
        return source

    def add_session(self, session: EndedSession) -> None:
        self._open[id(session)] = session

    def forget_session(self, session: object) -> None:
        """Idempotent."""
        self._open.pop(id(session), None)

    def add_in_process(self, record: ClientRecord) -> None:
        """Show a session of this process, until `forget_client`."""
        self._in_process += 1
        record.process_id = -self._in_process
        self.clients[record.process_id] = record

    def forget_client(self, record: ClientRecord) -> None:
        """Idempotent."""
        self.clients.pop(record.process_id, None)

    def end_sessions(self, reason: SqlError) -> None:
        """End every open session."""
        for session in list(self._open.values()):
            session.end(reason)

    def end_dropped(self, roles: Container[str]) -> None:
        """End the sessions whose role is not among these any more."""
        for session in list(self._open.values()):
            role = session.stored_role
            if role is not None and role not in roles:
                session.end(SqlError("57P01", f'terminating connection because role "{role}" was dropped or renamed'))
