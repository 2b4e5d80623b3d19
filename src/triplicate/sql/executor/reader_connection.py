"""One read-only connection and the thread that uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.runtime import Worker
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.interface import Prepared, Row, SpecialColumns, StatementKind
from triplicate.sql.core.rights import Rights
from triplicate.sql.executor.authorizer import Authorizer, check_width
from triplicate.sql.executor.examined_schema import NewestSchema
from triplicate.sql.executor.interrupts import StopFlag, interrupted_by_cancellation
from triplicate.sql.executor.short_reads import (
    CHECKED_STEPS,
    EXAMINED_CHARACTERS,
    FIRST_ROWS,
    ROW_BYTES,
    StepLimit,
    execute_query,
    next_rows,
    read_short,
    refresh_schema,
)
from triplicate.sql.executor.statement_rights import StatementRights
from triplicate.sql.executor.transaction_functions import TransactionContext
from triplicate.sql.storage.sqlite_file import ConnectionSetup, open_reader, read_state
from triplicate.sql.storage.sqlite_schema import columns_of, special_columns_of
from triplicate.sql.storage.sqlstates import FAULTS, from_sqlite

_PROGRESS_STEPS = 5000


def closing_error() -> SqlError:
    return SqlError("57P01", "the database is being closed")


@dataclass(frozen=True, slots=True)
class _Opened:
    connection: apsw.Connection
    authorizer: Authorizer
    busy_timeout_ms: int


class ReaderConnection:
    """Opened by its first use. All methods but `run`, `refuse` and `shut` block and are run on its worker. While none runs there, those
    named ``…_now`` run on the loop.
    """

    def __init__(self, worker: Worker, path: str, setup: ConnectionSetup | None, schema: NewestSchema) -> None:
        self.worker = worker
        self._path = path
        self._setup = setup
        self._schema = schema
        self._opened: _Opened | None = None
        self._rights: StatementRights | None = None
        self.context = TransactionContext()
        self.stop = StopFlag()
        """Of the statement that runs."""
        self.closed = False
        """Set when the pool begins to close. The connection holds nothing from then on."""

    async def run(self, function: Callable[..., Any], *arguments: Any, stop: StopFlag | None = None) -> Any:
        """Run one of the methods below on the connection's thread, to its end; a cancellation interrupts it by `stop`.

        Raises:
            SqlError: 57P01, the database has been closed.
        """
        if self.closed:
            raise closing_error()
        return await self.worker.run(function, *arguments, answer=interrupted_by_cancellation(stop or StopFlag()))

    def _open(self) -> _Opened:
        if self._opened is None:
            connection = open_reader(self._path, self._setup)
            self.context.register(connection)
            connection.set_progress_handler(self._is_stopped, _PROGRESS_STEPS)
            busy_timeout_ms: int = connection.execute("pragma busy_timeout").get
            self._opened = _Opened(connection, Authorizer(connection, self._schema), busy_timeout_ms)
        return self._opened

    def _is_stopped(self) -> bool:
        return self.stop.reason is not None

    def examine(self, sql: str, characters_max: int | None = None) -> Prepared:
        """Check a statement by the schema as it is now, see `Authorizer.examine`."""
        opened = self._open()
        refresh_schema(opened.connection)
        return opened.authorizer.examine(sql, characters_max)

    def rights_of(self, sql: str, kind: StatementKind) -> Rights:
        """The rights that a statement needs, see `StatementRights.of`."""
        return self._find_rights().of(sql, kind)

    def lock_rights_of(self, sql: str) -> Rights:
        """See `StatementRights.of_lock`."""
        return self._find_rights().of_lock(sql)

    def truncation_rights_of(self, sql: str) -> Rights:
        """See `StatementRights.of_truncation`."""
        return self._find_rights().of_truncation(sql)

    def _find_rights(self) -> StatementRights:
        connection = self._open().connection
        refresh_schema(connection)
        if self._rights is None:
            self._rights = StatementRights(connection, self._register)
        return self._rights

    def _register(self, connection: apsw.Connection) -> None:
        if self._setup is not None:
            self._setup(connection)
        TransactionContext().register(connection)

    def begin(self) -> int:
        """Begin a snapshot; its position."""
        try:
            connection = self._open().connection
            connection.execute("begin")
            return read_state(connection).position
        except apsw.Error as error:
            raise from_sqlite(error) from error

    def begin_now(self) -> int | None:
        """Begin a snapshot on the loop; its position, or None where the worker must do it. The connection has been opened."""
        opened = self._open()
        connection = opened.connection
        try:
            with self._limited(opened):
                connection.execute("begin")
                return read_state(connection).position
        except apsw.Error:
            if connection.in_transaction:
                connection.execute("rollback")
            return None

    def read_now(self, prepared: Prepared, parameters: Sequence[Value]) -> list[Row] | None:
        """Run a short statement on the loop, see `read_short`. The connection has been opened."""
        opened = self._open()
        with self._limited(opened):
            return read_short(opened.connection, opened.authorizer, prepared, parameters)

    def examine_now(self, sql: str) -> Prepared | None:
        """Check a statement on the loop, see `LoopReader.examine`. The connection has been opened."""
        if len(sql) > EXAMINED_CHARACTERS:
            return None
        try:
            with self._limited(self._open()):
                return self.examine(sql, EXAMINED_CHARACTERS)
        except FAULTS:
            return None

    @contextmanager
    def _limited(self, opened: _Opened) -> Iterator[None]:
        """Give the connection the limits of the loop. On a thread the checks would be too many, and a locked file is waited for."""
        connection = opened.connection
        connection.set_progress_handler(StepLimit(connection).is_reached, CHECKED_STEPS)
        connection.set_busy_timeout(0)
        longest = connection.limit(apsw.SQLITE_LIMIT_LENGTH, ROW_BYTES)
        try:
            yield
        finally:
            connection.limit(apsw.SQLITE_LIMIT_LENGTH, longest)
            connection.set_busy_timeout(opened.busy_timeout_ms)
            connection.set_progress_handler(self._is_stopped, _PROGRESS_STEPS)

    def end(self) -> None:
        """End the snapshot. No effect when there is none."""
        if self._opened is not None and self._opened.connection.in_transaction:
            self._opened.connection.execute("rollback")

    def start(self, prepared: Prepared, parameters: Sequence[Value], stop: StopFlag) -> tuple[apsw.Cursor | None, list[Row]]:
        """Start a statement: its cursor and first rows; no cursor when these are all."""
        self.stop = stop
        opened = self._open()
        cursor = opened.connection.cursor()
        try:
            with opened.authorizer.running(StatementKind.READ, explain=prepared.tag == "EXPLAIN"):
                execute_query(cursor, prepared, parameters)
                check_width(cursor, prepared)
                rows, is_end = next_rows(cursor, FIRST_ROWS)
        except FAULTS as error:
            cursor.close(True)
            raise self._failure(error, prepared.sql) from error
        if is_end:
            cursor.close(True)
            return None, rows
        return cursor, rows

    def fetch(self, cursor: apsw.Cursor, max_rows: int, stop: StopFlag) -> tuple[list[Row], bool]:
        """The next rows of a statement, as `next_rows`."""
        self.stop = stop
        try:
            with self._open().authorizer.running(StatementKind.READ):
                return next_rows(cursor, max_rows)
        except FAULTS as error:
            raise self._failure(error, None) from error

    def columns_of(self, table: str) -> list[tuple[str, str]] | None:
        return columns_of(self._open().connection, table)

    def special_columns_of(self, table: str) -> SpecialColumns:
        return special_columns_of(self._open().connection, table)

    @property
    def is_open(self) -> bool:
        """Whether the connection has been opened, which the first use on the worker does."""
        return self._opened is not None

    def refuse(self) -> None:
        """Refuse further work, and interrupt what runs."""
        self.closed, self.stop.reason = True, closing_error()

    def shut(self) -> asyncio.Future[None]:
        """Close the connection and its open statements when the running one has ended. The next use opens another."""
        return self.worker.run(self._close)

    def _close(self) -> None:
        opened, self._opened = self._opened, None
        rights, self._rights = self._rights, None
        if rights is not None:
            rights.close()
        if opened is not None:
            opened.connection.close(True)

    def _failure(self, error: Exception, sql: str | None) -> SqlError:
        if isinstance(error, apsw.InterruptError):
            return self.stop.reason or SqlError("57014", "canceling statement due to user request")
        return from_sqlite(error, sql)
