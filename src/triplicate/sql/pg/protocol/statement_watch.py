"""Counts the statements of one connection, with their times, and shows the one that runs."""

from __future__ import annotations

from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.prepared_statements import Portal, PreparedStatement


class StatementWatch:
    """Told of the begin and the end of each execution. It costs a statement two readings of the clock and a few additions."""

    def __init__(self, state: ConnectionState) -> None:
        self._now = state.clock.monotonic
        self._record = state.record
        self._waits = state.session.waits
        self._statistics = state.database.activity.statements
        self._roles = state.session.roles
        self._administrator = state.session.roles.current_user

    def begin(self, portal: Portal) -> None:
        """A portal is started, or continued."""
        record = self._record
        waits = self._waits
        portal.began_s = record.began_s = waits.began_s = self._now()
        record.ended_s = None
        if waits.writer_s or waits.log_s or waits.read_s:
            waits.clear()
        record.statement = portal.statement.statement

    def pause(self, portal: Portal) -> None:
        """The portal has more rows, which its client has not asked for yet."""
        self._record.ended_s = now = self._now()
        portal.spent_s += now - portal.began_s
        portal.began_s = 0.0
        role = self._roles.acting or self._administrator
        self._statistics.use(role, portal.statement.statement).add_waits(self._waits)

    def end(self, portal: Portal, rows: int, calls: int = 1, *, failed: bool = False) -> None:
        """The portal has run to its end, or has failed.

        Args:
            rows: returned or changed. calls: how often its statement has run.
        """
        self._record.ended_s = now = self._now()
        seconds = portal.spent_s + now - portal.began_s
        portal.began_s = portal.spent_s = 0.0
        use, role = portal.statement.use, self._roles.acting or self._administrator
        if use is None or use.role != role or not use.is_counted:
            use = portal.statement.use = self._statistics.use(role, portal.statement.statement)
        self._statistics.count(use, seconds, rows, self._waits, calls, failed=failed)

    def portal_of(self, statement: PreparedStatement) -> Portal:
        """A portal that stands for several executions of a statement together."""
        portal = Portal(statement, (), ())
        self.begin(portal)
        return portal
