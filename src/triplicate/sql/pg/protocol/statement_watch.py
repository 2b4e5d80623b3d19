"""Counts the statements of one connection, with their times, and shows the one that runs."""

from __future__ import annotations

from triplicate.sql.pg.protocol.connection_state import ConnectionState
from triplicate.sql.pg.protocol.prepared_statements import Portal, PreparedStatement


class StatementWatch:
    """Told of the begin and the end of each execution. It costs a statement two readings of the clock and a few additions."""

    def __init__(self, state: ConnectionState) -> None:
        self._state = state
        self._now = state.clock.monotonic
        self._record = state.record
        self._statistics = state.database.activity.statements

    def begin(self, portal: Portal) -> None:
        """A portal is started, or continued. No effect if it runs already."""
        if portal.began_s:
            return
        record = self._record
        portal.began_s = record.began_s = record.changed_s = self._now()
        record.statement, record.is_running = portal.statement.statement, True

    def pause(self, portal: Portal) -> None:
        """The portal has more rows, which its client has not asked for yet."""
        now = self._now()
        portal.spent_s += now - portal.began_s
        portal.began_s = 0.0
        self._record.changed_s, self._record.is_running = now, False

    def end(self, portal: Portal, rows: int, *, calls: int = 1, failed: bool = False) -> None:
        """The portal has run to its end, or has failed.

        Args:
            rows: returned or changed. calls: how often its statement has run.
        """
        record, now = self._record, self._now()
        seconds = portal.spent_s + now - portal.began_s
        portal.began_s = portal.spent_s = 0.0
        record.changed_s, record.is_running = now, False
        statement = portal.statement
        use = statement.use
        role = self._state.session.roles.current_user
        if use is None or not use.is_counted or use.role != role:
            use = statement.use = self._statistics.use(role, statement.statement)
        use.add(seconds, rows, calls, failed=failed)
        slow_s = self._statistics.slow_s
        if slow_s and seconds >= slow_s:
            self._statistics.on_slow(use, seconds, rows)

    def portal_of(self, statement: PreparedStatement) -> Portal:
        """A portal that stands for several executions of a statement together."""
        portal = Portal(statement, (), ())
        self.begin(portal)
        return portal
