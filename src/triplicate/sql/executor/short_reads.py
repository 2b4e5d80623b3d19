"""Statements that are run on the event loop, with limits within which they delay no other client noticeably."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.interface import Prepared, Row
from triplicate.sql.executor.authorizer import Authorizer
from triplicate.sql.storage.sqlstates import FAULTS

CHECKED_STEPS = 250
"""SQLite counts the steps of all executions of a statement together, so the first check of one comes after 1 to 250 of its steps."""
_CHECKS = 21
"""The check at which a statement is interrupted: after 5,000 to 5,250 steps, some 100 µs."""
_SCHEMA_CHECKS = 200
"""The same for reading a schema: 50,000 steps are some 7,000 tables, indexes and views, and 20 ms. It is done once for each schema."""
_PAGES = 100
"""Limit on the pages that are not in the connection's cache, from the first check on. Each costs some 3 µs where the file is in memory."""
FIRST_ROWS = 200
"""Limit on the rows of a short read, and the rows that a thread fetches together with the start of a statement."""
ROW_BYTES = 8 * 1024
"""The longest row or value. A long value takes time that the steps do not measure."""
EXAMINED_CHARACTERS = 2000
"""Length of the longest statement that is examined on the loop."""
_RESULT_BYTES = 64 * 1024
"""Limit on the text and bytes of all rows, in characters and bytes."""
BATCH_BYTES = 4 * 1024 * 1024
"""Limit on the text and bytes of the rows that are fetched at once, as above. The last of them may exceed it."""


class StepLimit:
    """Interrupts a statement of one connection after a number of steps and pages."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.checks = 0
        """Checks in the statement that runs."""

    def begin(self) -> None:
        """A statement begins."""
        self.checks = 0

    def begin_schema(self) -> None:
        """A schema is read."""
        self.checks = _CHECKS - _SCHEMA_CHECKS

    def is_reached(self) -> bool:
        """Whether the statement must stop; SQLite asks after each `CHECKED_STEPS` steps."""
        self.checks += 1
        read, _ = self._connection.status(apsw.SQLITE_DBSTATUS_CACHE_MISS, self.checks == 1)
        return self.checks >= _CHECKS or (self.checks > 1 and read > _PAGES)


def refresh_schema(connection: apsw.Connection) -> None:
    """Let a connection notice a schema change of another one before it examines a statement.

    SQLite notices it only when a statement opens a table. A statement that is merely prepared sees the old schema: DROP TABLE IF EXISTS
    would seem to do nothing.
    """
    connection.execute("select 1 from sqlite_schema limit 1").fetchall()


def execute_query(cursor: apsw.Cursor, prepared: Prepared, parameters: Sequence[Value]) -> apsw.Cursor:
    """Start a query with the schema as it is now."""
    if prepared.is_constant:
        refresh_schema(cursor.connection)
    return cursor.execute(prepared.sql, tuple(parameters), can_cache=not prepared.is_constant)


def read_short(connection: apsw.Connection, authorizer: Authorizer, prepared: Prepared, parameters: Sequence[Value]) -> list[Row] | None:
    """Run a statement to its end. The connection has a `StepLimit`.

    Returns:
        All rows, or None where the statement exceeds the limits or fails. It is closed then.

    Raises:
        apsw.BusyError, apsw.LockedError: the file is locked.
    """
    rows: list[Row] | None = None
    authorizer.begin_read()
    cursor = connection.cursor()
    try:
        rows = _short_result(execute_query(cursor, prepared, parameters))
    except (apsw.BusyError, apsw.LockedError):
        raise
    except FAULTS:
        return None
    finally:
        authorizer.end()
        if rows is None:
            cursor.close(True)
    # The schema has changed since the statement was described: the thread reports it.
    return None if rows and len(rows[0]) != len(prepared.columns) else rows


def _short_result(cursor: apsw.Cursor) -> list[Row] | None:
    """All rows of a statement; None where they exceed the limits. The statement is open then."""
    rows: list[Row] = []
    size = 0
    for row in cursor:
        rows.append(row)
        if len(rows) > 1:  # The limit on one row is SQLite's.
            size += size_of(row)
            if len(rows) > FIRST_ROWS or size > _RESULT_BYTES:
                return None
    return rows


def size_of(row: Row) -> int:
    """The text and bytes of a row, in characters and bytes."""
    return sum([len(value) for value in row if type(value) is str or type(value) is bytes])


def next_rows(cursor: apsw.Cursor, max_rows: int) -> tuple[list[Row], bool]:
    """The next rows, at most `max_rows` and about `BATCH_BYTES`, and whether there are no more behind them."""
    rows: list[Row] = []
    size = 0
    for row in cursor:
        rows.append(row)
        size += size_of(row)
        if len(rows) >= max_rows or size > BATCH_BYTES:
            return rows, False
    return rows, True
