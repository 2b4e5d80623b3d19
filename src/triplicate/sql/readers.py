"""Reading connections: a bounded pool, each with its own view of the database, run on a few threads."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.runtime import Host, Worker, deadline_after, shielded, timeout_at

from .core.columns import Value
from .functions import Numbers, TransactionContext
from .gate import Gate, check_width
from .interface import Prepared, Row, StatementKind
from .schema import columns_of
from .sqlstates import from_sqlite
from .store import ConnectionSetup, open_reader, read_state
from .writer import StopFlag, TransactionLost

_PROGRESS_STEPS = 5000
_EXAMINED_STATEMENTS = 2000
FIRST_ROWS = 200
"""Rows fetched together with the start of a statement, which saves most statements a second hop to the thread."""
_FAULTS = (apsw.Error, SqlError, UnicodeError, OverflowError, TypeError, ValueError)


async def finish_or_stop(running: Awaitable[Any], stop: StopFlag) -> Any:
    """The result of work on a thread. When the waiter is cancelled the work is interrupted and its end awaited, since whoever
    uses the connection next must not meet it there.
    """
    assert isinstance(running, asyncio.Future), "a worker answers with a future"
    result: asyncio.Future[Any] = running
    try:
        return await asyncio.shield(result)
    except asyncio.CancelledError:
        if not result.done():
            stop.reason = SqlError("57014", "canceling statement because its client has gone")
            await shielded(_ended(result))
        raise


async def _ended(result: asyncio.Future[Any]) -> None:
    try:
        await asyncio.shield(result)
    except (apsw.Error, SqlError, TransactionLost):
        return  # Nobody waits for it any more.


class Reader:
    """One read-only connection. All methods but `run` block and are run on its worker."""

    def __init__(self, worker: Worker, path: str, setup: ConnectionSetup | None) -> None:
        self._worker = worker
        self._path = path
        self._setup = setup
        self._connection: apsw.Connection | None = None
        self._gate: Gate | None = None
        self.context = TransactionContext()
        self.stop = StopFlag()
        self.closed = False
        """Set when the pool begins to close: whoever still holds this reader has nothing to let go of any more."""

    async def run(self, function: Callable[..., Any], *arguments: Any, stop: StopFlag | None = None) -> Any:
        """Run one of the methods below on the connection's thread, to its end; a cancellation interrupts it by `stop`.

        Raises:
            SqlError: 57P01, the database has been closed.
        """
        if self.closed:
            raise _closing()
        return await finish_or_stop(self._worker.run(function, *arguments), stop or StopFlag())

    def connection(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = open_reader(self._path, self._setup)
            self.context.register(self._connection)
            self._gate = Gate(self._connection)
            self._connection.set_progress_handler(lambda: self.stop.reason is not None, _PROGRESS_STEPS)
        return self._connection

    def gate(self) -> Gate:
        self.connection()
        assert self._gate is not None, "it is made with the connection"
        return self._gate

    def examine(self, sql: str) -> Prepared:
        """What the gate says, by the schema as it is now."""
        # Only a statement that runs notices that another connection has changed the schema; one that is merely prepared sees the old
        # one, and takes DROP TABLE IF EXISTS for idle.
        self.connection().execute("select 1 from sqlite_schema limit 1").fetchall()
        return self.gate().examine(sql)

    def begin(self) -> int:
        """Take a snapshot; the position it shows."""
        connection = self.connection()
        connection.execute("begin")
        return read_state(connection).position

    def end(self) -> None:
        """Let the snapshot go."""
        connection = self.connection()
        if connection.in_transaction:
            connection.execute("rollback")

    def start(self, prepared: Prepared, parameters: Sequence[Value], stop: StopFlag) -> tuple[apsw.Cursor | None, list[Row]]:
        """Start a statement: its cursor and first rows; no cursor when these are all."""
        self.stop = stop
        cursor = self.connection().cursor()
        try:
            with self.gate().running(StatementKind.READ, explain=prepared.tag == "EXPLAIN"):
                cursor.execute(prepared.sql, tuple(parameters))
                check_width(cursor, prepared)
                rows = _take(cursor, FIRST_ROWS)
        except _FAULTS as error:
            cursor.close(True)
            raise self._failure(error, prepared.sql) from error
        if len(rows) < FIRST_ROWS:
            cursor.close(True)
            return None, rows
        return cursor, rows

    def fetch(self, cursor: apsw.Cursor, max_rows: int, stop: StopFlag) -> list[Row]:
        self.stop = stop
        try:
            with self.gate().running(StatementKind.READ):
                return _take(cursor, max_rows)
        except _FAULTS as error:
            raise self._failure(error, None) from error

    def columns_of(self, table: str) -> list[tuple[str, str]] | None:
        return columns_of(self.connection(), table)

    async def shut(self) -> None:
        """Close the connection when what runs on it has ended."""
        await self._worker.run(self._close)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close(True)
            self._connection = None

    def _failure(self, error: Exception, sql: str | None) -> SqlError:
        if isinstance(error, apsw.InterruptError):
            return self.stop.reason or SqlError("57014", "canceling statement due to user request")
        return from_sqlite(error, sql)


def _closing() -> SqlError:
    return SqlError("57P01", "the database is being closed")


def _take(cursor: apsw.Cursor, max_rows: int) -> list[Row]:
    rows: list[Row] = []
    for row in cursor:
        rows.append(row)
        if len(rows) >= max_rows:
            break
    return rows


class ReaderPool:
    """Hands out readers, first come first served.

    Args:
        limit: connections at most. threads: workers they share. wait_s: how long to wait for one.
    """

    def __init__(
        self, host: Host, name: str, path: str, *, limit: int, threads: int, wait_s: float, setup: ConnectionSetup | None = None
    ) -> None:
        self._clock = host.clock
        self._workers = [host.new_worker(f"sql-{name}-reader-{index}") for index in range(threads)]
        self._path = path
        self._setup = setup
        self._limit = limit
        self._wait_s = wait_s
        self._free: list[Reader] = []
        self._all: list[Reader] = []
        self._waiting: deque[asyncio.Future[Reader]] = deque()
        self._examined: OrderedDict[str, Prepared] = OrderedDict()
        self._examined_version = -1
        self._examiner = Reader(self._workers[0], path, setup)
        self._closed = False
        self.numbers: Numbers | None = None
        """Of the leadership this node has, for the functions on the readers."""

    async def acquire(self) -> Reader:
        """A reader of one's own until `release`.

        Raises:
            SqlError: 53300 when none becomes free in time; 57P01, the database has been closed.
        """
        self._check_open()
        if self._free:
            reader = self._free.pop()
        elif len(self._all) < self._limit:
            reader = Reader(self._workers[len(self._all) % len(self._workers)], self._path, self._setup)
            self._all.append(reader)
        else:
            reader = await self._wait()
        reader.context.numbers = self.numbers
        reader.context.number = None
        return reader

    async def _wait(self) -> Reader:
        waiting: asyncio.Future[Reader] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            async with timeout_at(deadline_after(self._clock, self._wait_s)):
                return await waiting
        except TimeoutError:
            raise SqlError("53300", f"all {self._limit} reading connections of this database are in use") from None
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                self.release(waiting.result())
            raise
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    def release(self, reader: Reader) -> None:
        """Give back a reader that holds no snapshot and no open statement."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(reader)
                return
        self._free.append(reader)

    async def examine(self, sql: str, schema_version: int) -> Prepared:
        """What the gate says about a statement, remembered while the schema stays.

        Raises:
            SqlError: as `Gate.examine`; 57P01, the database has been closed.
        """
        self._check_open()
        if schema_version != self._examined_version:
            self._examined.clear()
            self._examined_version = schema_version
        found = self._examined.get(sql)
        if found is not None:
            self._examined.move_to_end(sql)
            return found
        prepared: Prepared = await self._workers[0].run(self._examiner.examine, sql)
        if schema_version == self._examined_version:
            self._examined[sql] = prepared
            if len(self._examined) > _EXAMINED_STATEMENTS:
                self._examined.popitem(last=False)
        return prepared

    async def columns_of(self, table: str) -> list[tuple[str, str]] | None:
        """Columns of a table as of now.

        Raises:
            SqlError: 57P01, the database has been closed.
        """
        self._check_open()
        return await self._workers[0].run(self._examiner.columns_of, table)

    def _check_open(self) -> None:
        # The examiner opens its connection when it is first asked: after the end that would leave one behind.
        if self._closed:
            raise _closing()

    async def close(self) -> None:
        """Close all connections; those in use when their work is done. Idempotent."""
        if self._closed:
            return
        self._closed = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(_closing())
        readers = [*self._all, self._examiner]
        for reader in readers:
            reader.closed, reader.stop.reason = True, _closing()
        for reader in readers:
            await reader.shut()
        for worker in self._workers:
            await worker.close()
