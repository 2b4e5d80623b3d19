"""Counts the statements of a session of the process, with times and waits, and shows the session, as `pg.protocol` does for clients."""

from __future__ import annotations

from triplicate.sql.core.audit import IN_PROCESS
from triplicate.sql.core.client_record import ClientRecord
from triplicate.sql.core.statement_statistics import StatementUse, sqlite_statement
from triplicate.sql.core.transaction_block import TransactionStatus
from triplicate.sql.engine.session import SqlSession
from triplicate.sql.engine.sql_database import SqlDatabase

KNOWN_TEXTS = 500
KNOWN_CHARACTERS = 4000
"""Limits of the texts whose entries a session remembers: their number, and the length of each."""


class InProcessCounts:
    """The counts of one session, and its record for views, which is shown until `close`, or until the node ends the session."""

    def __init__(self, database: SqlDatabase, session: SqlSession) -> None:
        clock, activity = database.clock, database.activity
        self.now = clock.monotonic
        self.record = record = ClientRecord(session, IN_PROCESS, lambda: session.application_name, self.now())
        record.transaction_us = lambda: clock.wall_us() - round((clock.monotonic() - self._transaction_s) * 1e6)
        self._activity = activity
        activity.add_in_process(record)
        session.ended.add_done_callback(lambda _: self.close())
        self.waits = session.waits
        self.statistics = activity.statements
        self._roles = session.roles
        self._administrator = session.roles.current_user
        self._session = session
        self._transaction_s = self.now()
        """When the statement began that was the first one of a transaction, or outside of any."""
        self._uses: dict[str, StatementUse] = {}

    def close(self) -> None:
        """Show the session no more. Idempotent."""
        self._activity.forget_client(self.record)

    def begin(self, sql: str) -> CountedStatement:
        """A statement begins now."""
        counted = CountedStatement(self, sql)
        counted.go_on()
        self.record.statement = sql
        if self._session.status is TransactionStatus.IDLE:
            self._transaction_s = self.record.began_s
        return counted

    def use(self, sql: str) -> StatementUse:
        """The entry of a statement in the statistics."""
        role, found = self._roles.acting or self._administrator, self._uses.get(sql)
        if found is None or found.role != role or not found.is_counted:
            found = self.statistics.use(role, sqlite_statement(sql))
            if len(sql) <= KNOWN_CHARACTERS:
                if len(self._uses) >= KNOWN_TEXTS:
                    self._uses.clear()
                self._uses[sql] = found
        return found


class CountedStatement:
    """One execution. It runs from its begin, or from `go_on`, to `pause` or `end`."""

    __slots__ = ("_began_s", "_counts", "_spent_s", "_sql", "is_over", "is_paused", "rows")

    def __init__(self, counts: InProcessCounts, sql: str) -> None:
        self._counts = counts
        self._sql = sql
        self._began_s = self._spent_s = 0.0
        """When it began to run, and the time before."""
        self.is_over = self.is_paused = False
        self.rows = 0
        """Returned or changed."""

    def go_on(self) -> None:
        """It runs from now on."""
        waits = self._counts.waits
        if waits.writer_s or waits.log_s or waits.read_s:
            waits.clear()
        self.is_paused = False
        record = self._counts.record
        self._began_s = waits.began_s = record.began_s = self._counts.now()
        record.ended_s = None

    def pause(self) -> None:
        """It has more rows, for which its caller has not asked yet."""
        self._counts.record.ended_s = now = self._counts.now()
        self._spent_s += now - self._began_s
        self.is_paused = True
        self._counts.use(self._sql).add_waits(self._counts.waits)

    def end(self, *, calls: int = 1, failed: bool = False) -> None:
        """It has run to its end, was closed, or has failed. Idempotent."""
        if self.is_over:
            return
        self.is_over = True
        counts, seconds = self._counts, self._spent_s
        if not self.is_paused:
            counts.record.ended_s = now = counts.now()
            seconds += now - self._began_s
        counts.statistics.count(counts.use(self._sql), seconds, self.rows, counts.waits, calls, failed=failed)
