"""The reading connection of the event loop, for statements that end within a few thousand steps of SQLite.

A thread costs more than such a statement: two switches, a future and a turn of the loop. The limits are counted, so a simulated node
behaves the same each time. A page that is in no cache is read from the disk on the loop; the limit on the steps bounds their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from triplicate.runtime import fault_point
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.interface import Prepared, Row
from triplicate.sql.core.long_reads import LongReads
from triplicate.sql.executor.authorizer import Authorizer
from triplicate.sql.executor.examined_schema import NewestSchema
from triplicate.sql.executor.reader_connection import closing_error
from triplicate.sql.executor.short_reads import CHECKED_STEPS, EXAMINED_CHARACTERS, ROW_BYTES, StepLimit, read_short, refresh_schema
from triplicate.sql.executor.transaction_functions import TransactionContext
from triplicate.sql.storage.sqlite_file import ConnectionSetup, open_reader
from triplicate.sql.storage.sqlstates import FAULTS


@dataclass(frozen=True, slots=True)
class _LoopConnection:
    connection: apsw.Connection
    authorizer: Authorizer
    limit: StepLimit


class LoopReader:
    """Runs short statements in the caller. Opened by its first use. Nothing stays open between calls: no statement, and no snapshot that
    would keep the write-ahead log.
    """

    def __init__(self, path: str, setup: ConnectionSetup | None, schema: NewestSchema) -> None:
        self._path = path
        self._setup = setup
        self._schema = schema
        self._opened: _LoopConnection | None = None
        self.long = LongReads()
        """Statements that exceeded the limits, here or on another connection of the pool."""
        self._is_closed = False

    def _open(self) -> _LoopConnection:
        if self._is_closed:
            raise closing_error()
        if self._opened is None:
            connection = open_reader(self._path, self._setup)
            connection.set_busy_timeout(0)
            connection.limit(apsw.SQLITE_LIMIT_LENGTH, ROW_BYTES)
            TransactionContext().register(connection)
            limit = StepLimit(connection)
            connection.set_progress_handler(limit.is_reached, CHECKED_STEPS)
            self._opened = _LoopConnection(connection, Authorizer(connection, self._schema), limit)
        return self._opened

    def read(self, prepared: Prepared, parameters: Sequence[Value], schema_version: int) -> list[Row] | None:
        """Run a statement to its end.

        Args:
            schema_version: of the database, for which it was prepared.

        Returns:
            All rows, or None where the statement must run in a reader's thread: it is too long, the file is locked, or the statement
            failed. The thread runs it from its beginning, and reports its error.

        Raises:
            SqlError: 57P01, the database has been closed.
        """
        if not prepared.is_measured or not self.long.admits(prepared.sql, schema_version):
            return None
        opened = self._opened or self._open()
        opened.limit.checks = 0
        try:
            rows = read_short(opened.connection, opened.authorizer, prepared, parameters)
        except (apsw.BusyError, apsw.LockedError):
            return None
        if rows is None:
            self._note_interrupted(prepared.sql, schema_version)
        return rows

    @fault_point("sql.read_interrupted")
    def _note_interrupted(self, sql: str, schema_version: int) -> None:
        self.long.exceeded(sql, schema_version)

    def examine(self, sql: str) -> Prepared | None:
        """Check a statement, see `Authorizer.examine`. None where that may take long or has failed: the examiner's thread must do it.

        Raises:
            SqlError: 57P01, the database has been closed.
        """
        if len(sql) > EXAMINED_CHARACTERS:
            return None
        opened = self._open()
        opened.limit.begin_schema()
        try:
            refresh_schema(opened.connection)
            opened.limit.begin()
            return opened.authorizer.examine(sql, EXAMINED_CHARACTERS)
        except FAULTS:
            return None

    def refuse(self) -> None:
        """Refuse further work."""
        self._is_closed = True

    def close(self) -> None:
        """Close the connection. Called on any thread, after `refuse`."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.connection.close(True)
