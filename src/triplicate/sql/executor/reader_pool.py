"""Reading connections: a bounded pool, each with its own view of the database, run on a few threads."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.runtime import Host, Timer, Worker, deadline_after, shielded, timeout_at
from triplicate.sql.core.column_codec import Value
from triplicate.sql.executor.authorizer import Authorizer, check_width
from triplicate.sql.executor.interrupts import StopFlag, finish_or_stop
from triplicate.sql.executor.threads import OwnThreads, Threads
from triplicate.sql.executor.transaction_functions import TransactionContext, TransactionIds
from triplicate.sql.interface import Prepared, Result, Row, StatementKind
from triplicate.sql.storage.sqlite_file import ConnectionSetup, open_reader, read_state
from triplicate.sql.storage.sqlite_schema import columns_of, key_of
from triplicate.sql.storage.sqlstates import from_sqlite

_PROGRESS_STEPS = 5000
_EXAMINED_STATEMENTS = 2000
_EXAMINED_CHARACTERS = 16 * 1024
"""Longer statements, as of a restored dump, are not remembered: each is sent once, and thousands of them would fill the memory."""
_LOOK = 0.25
"""How often limits are looked at, as a part of the shortest."""
FIRST_ROWS = 200
"""Rows fetched together with the start of a statement, which saves most statements a second hop to the thread."""
_FAULTS = (apsw.Error, SqlError, UnicodeError, OverflowError, TypeError, ValueError)


class ReaderConnection:
    """One read-only connection. All methods but `run` block and are run on its worker."""

    def __init__(self, worker: Worker, path: str, setup: ConnectionSetup | None) -> None:
        self.worker = worker
        self._path = path
        self._setup = setup
        self._connection: apsw.Connection | None = None
        self._gate: Authorizer | None = None
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
        return await finish_or_stop(self.worker.run(function, *arguments), stop or StopFlag())

    def connection(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = open_reader(self._path, self._setup)
            self.context.register(self._connection)
            self._gate = Authorizer(self._connection)
            self._connection.set_progress_handler(lambda: self.stop.reason is not None, _PROGRESS_STEPS)
        return self._connection

    def gate(self) -> Authorizer:
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
        try:
            connection = self.connection()
            connection.execute("begin")
            return read_state(connection).position
        except apsw.Error as error:
            raise from_sqlite(error) from error

    def end(self) -> None:
        """Let the snapshot go."""
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("rollback")

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

    def key_of(self, table: str) -> list[str]:
        return key_of(self.connection(), table)

    def shut(self) -> asyncio.Future[None]:
        """Close the connection, with whatever is open on it, when what runs on it has ended; the next use opens another."""
        closing = self.worker.run(self._close)
        assert isinstance(closing, asyncio.Future), "a worker answers with a future"
        return closing

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close(True)

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


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Bounds of one database's reading connections; see the settings of a node."""

    connections: int
    threads: int
    wait_s: float
    idle_s: float = 60.0
    snapshot_s: float = 3600.0


class HeldSnapshot:
    """A reader in one session's hands: for one statement, for a transaction's snapshot, or while a result is open.

    It ends with `release`, or when a limit is reached: then a statement that runs is interrupted, the snapshot is let go, and every
    further `run` raises the error that says why.
    """

    def __init__(self, pool: ReaderPool, reader: ReaderConnection, now: float, *, snapshot: bool) -> None:
        self._pool = pool
        self.reader = reader
        self.begun_s = now
        self.snapshot = snapshot
        """Whether it counts among the transactions, which leave some readers to single statements."""
        self.idle_since: float | None = None
        """Since when nothing has run on it; None while something does."""
        self._stop: StopFlag | None = None
        self._given_back = False
        self._cancelled = False
        """Whether a wait was cancelled, and with it perhaps the answer that names an open statement."""
        self.ended: SqlError | None = None
        """Why it was taken away, or None."""

    async def run(self, function: Callable[..., Any], *arguments: Any, stop: StopFlag | None = None) -> Any:
        """Run one of the reader's methods, see `Reader.run`.

        Raises:
            SqlError: 25P03, 25P04, 53200: a limit was reached.
        """
        if self.ended is not None:
            raise self.ended
        self._stop, self.idle_since = stop or StopFlag(), None
        try:
            return await self.reader.run(function, *arguments, stop=self._stop)
        except asyncio.CancelledError:
            self._cancelled = True
            raise
        finally:
            self._stop, self.idle_since = None, self._pool.now()
            if self.ended is not None:
                self._let_go()

    def expire(self, reason: SqlError) -> None:
        """Take the reader away from its session."""
        if self.ended is not None or self._given_back:
            return
        self.ended = reason
        if self._stop is None:
            self._let_go()
        elif self._stop.reason is None:
            self._stop.reason = reason

    def _let_go(self) -> None:
        if not self._given_back:
            self._given_back = True
            self._finish_number(committed=False)
            self._pool.recover(self)

    async def close_cursor(self, cursor: apsw.Cursor) -> None:
        """Close an open statement, unless all of them were closed with the hold."""
        if self.ended is None and not self.reader.closed:
            await shielded(self.run(cursor.close, True))

    async def release(self, *, committed: bool) -> None:
        """Let the snapshot go and give the reader back. Idempotent.

        Args:
            committed: whether the transaction, whose number may have been asked for, ended well.
        """
        if self._given_back:
            return
        if self.snapshot and not self.reader.closed:
            await shielded(self.run(self.reader.end))
        self.give_back(committed=committed)

    def give_back(self, *, committed: bool) -> None:
        """As `release`, where there is no snapshot and no open statement."""
        if not self._given_back:
            self._given_back = True
            self._finish_number(committed=committed)
            if self._cancelled:
                self._pool.recover(self)  # No caller can close its statement, which would show the old snapshot to the next session.
            else:
                self._pool.give_back(self)

    def take_number(self) -> int | None:
        """The transaction's number, if one was drawn. The caller records its outcome from now on."""
        number, self.reader.context.number = self.reader.context.number, None
        return number

    def put_number_back(self, number: int | None, numbers: TransactionIds) -> None:
        """The transaction did not get the writer: its number ends with the snapshot, or now where that has ended."""
        if not self._given_back:
            self.reader.context.number = number
        elif number is not None:
            numbers.finish(number, committed=False)

    def _finish_number(self, *, committed: bool) -> None:
        number, ids = self.reader.context.number, self.reader.context.ids
        if number is not None and ids is not None:
            ids.finish(number, committed=committed)
        self.reader.context.number = None


@dataclass(slots=True)
class _Waiting:
    snapshot: bool
    granted: asyncio.Future[HeldSnapshot]


class ReaderPool:
    """Hands out readers, first come first served, and takes them back from those who keep them for too long.

    A quarter of the readers is for single statements, which end by themselves: transactions, whose snapshots last for as long as their
    clients please, cannot have them. Who has waited for half of the longest wait gets the reader that has been idle for longest, so no
    client keeps others from reading by doing nothing.
    """

    def __init__(
        self, host: Host, name: str, path: str, limits: ReadLimits, setup: ConnectionSetup | None = None, threads: Threads | None = None
    ) -> None:
        threads = threads if threads is not None else OwnThreads(host)
        self._host = host
        self._clock = host.clock
        self._workers = [threads.reader(name, number) for number in range(limits.threads)]
        self._path = path
        self._setup = setup
        self._limits = limits
        self._for_snapshots = limits.connections - limits.connections // 4
        self._free: list[ReaderConnection] = []
        self._all: list[ReaderConnection] = []
        self._holds: set[HeldSnapshot] = set()
        self._waiting: deque[_Waiting] = deque()
        self._look_timer: Timer | None = None
        self._examined: OrderedDict[str, Prepared] = OrderedDict()
        self._examined_version = -1
        self._columns: dict[str, list[tuple[str, str]] | None] = {}
        self._columns_version = -1
        # Every statement, of writers too, is examined first. So that must not wait behind a long statement on another's thread.
        self._examiner_worker = threads.examiner(name)
        self._examiner = ReaderConnection(self._examiner_worker, path, setup)
        self._closed = False
        self.ids: TransactionIds | None = None
        """Of the leadership this node has, for the functions on the readers."""

    def now(self) -> float:
        return self._clock.monotonic()

    @property
    def oldest_snapshot_s(self) -> float:
        """Age of the oldest snapshot or statement, in seconds; 0 when there is none."""
        return max((self.now() - hold.begun_s for hold in self._holds), default=0.0)

    async def acquire(self, *, snapshot: bool = False) -> HeldSnapshot:
        """A reader of one's own until `HeldSnapshot.release`.

        Args:
            snapshot: for a transaction, and not for a single statement.

        Raises:
            SqlError: 53300 when none becomes free in time; 57P01, the database has been closed.
        """
        self._check_open()
        if self._has_free(snapshot=snapshot):
            return self._hand_out(snapshot=snapshot)
        return await self._wait(_Waiting(snapshot, asyncio.get_running_loop().create_future()))

    def _has_free(self, *, snapshot: bool) -> bool:
        if snapshot and sum(hold.snapshot for hold in self._holds) >= self._for_snapshots:
            return False
        return bool(self._free) or len(self._all) < self._limits.connections

    def _hand_out(self, *, snapshot: bool) -> HeldSnapshot:
        reader = self._pick()
        reader.context.ids = self.ids
        reader.context.number = None
        hold = HeldSnapshot(self, reader, self.now(), snapshot=snapshot)
        self._holds.add(hold)
        if self._look_timer is None:
            self._watch()
        return hold

    def _pick(self) -> ReaderConnection:
        """A reader whose thread serves the fewest others now, so that a long statement stands in nobody's way while a thread is free."""
        busy = Counter(id(hold.reader.worker) for hold in self._holds)
        worker = min(self._workers, key=lambda one: busy[id(one)])
        quietest = min(self._free, key=lambda reader: busy[id(reader.worker)], default=None)
        if quietest is not None and (busy[id(quietest.worker)] == busy[id(worker)] or len(self._all) >= self._limits.connections):
            self._free.remove(quietest)
            return quietest
        reader = ReaderConnection(worker, self._path, self._setup)
        self._all.append(reader)
        return reader

    async def _wait(self, waiting: _Waiting) -> HeldSnapshot:
        self._waiting.append(waiting)
        wait_s = self._limits.wait_s
        timer = self._clock.call_at(self.now() + wait_s / 2, self._end_longest_idle, wait_s / 2)
        try:
            async with timeout_at(deadline_after(self._clock, wait_s)):
                return await waiting.granted
        except TimeoutError:
            if waiting.granted.done() and not waiting.granted.cancelled() and waiting.granted.exception() is None:
                return waiting.granted.result()  # It was granted in the turn of the loop in which the wait ended.
            raise SqlError(
                "53300",
                f"all {self._limits.connections} reading connections of this database are in use",
                detail=f"{self._for_snapshots} of them may be used by transactions, the others by single statements.",
            ) from None
        except asyncio.CancelledError:
            if waiting.granted.done() and not waiting.granted.cancelled() and waiting.granted.exception() is None:
                waiting.granted.result().give_back(committed=False)
            raise
        finally:
            timer.cancel()
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    def give_back(self, hold: HeldSnapshot) -> None:
        """For `HeldSnapshot`: its reader holds no snapshot and no open statement."""
        self._holds.discard(hold)
        self._free.append(hold.reader)
        for waiting in list(self._waiting):
            if waiting.granted.done():
                self._waiting.remove(waiting)
            elif self._has_free(snapshot=waiting.snapshot):
                self._waiting.remove(waiting)
                waiting.granted.set_result(self._hand_out(snapshot=waiting.snapshot))

    def recover(self, hold: HeldSnapshot) -> None:
        """For `HeldSnapshot`: close whatever is open on its reader, then give it to others."""
        if hold.reader.closed:
            self._holds.discard(hold)
            return

        def closed(closing: asyncio.Future[None]) -> None:
            error = closing.exception()
            if error is not None:  # Its connection is not used again in any case.
                self._host.trace("sql.reader_not_closed", error=repr(error))
            self.give_back(hold)

        hold.reader.shut().add_done_callback(closed)

    # Limits.

    def _watch(self) -> None:
        shortest_s = min(self._limits.idle_s, self._limits.snapshot_s)
        self._look_timer = self._clock.call_at(self.now() + shortest_s * _LOOK, self._look)

    def _look(self) -> None:
        """Take back what is idle, or has been used, for too long."""
        self._look_timer = None
        now, limits = self.now(), self._limits
        for hold in list(self._holds):
            if now - hold.begun_s >= limits.snapshot_s:
                hold.expire(
                    SqlError(
                        "25P04",
                        f"the statement or snapshot was older than {limits.snapshot_s:g} s",
                        hint="Read in shorter transactions, or raise node.snapshot_limit_s.",
                    )
                )
            elif hold.idle_since is not None and now - hold.idle_since >= limits.idle_s:
                hold.expire(
                    SqlError(
                        "25P03",
                        f"the transaction held a snapshot and said nothing for {limits.idle_s:g} s",
                        hint="End transactions that only read, too; autocommit ends each statement by itself.",
                    )
                )
        if self._holds and not self._closed:
            self._watch()

    def _end_longest_idle(self, idle_s: float) -> None:
        """Somebody has waited for so long: what was idle for all of that time goes."""
        idle = [hold for hold in self._holds if hold.idle_since is not None and self.now() - hold.idle_since >= idle_s]
        if idle:
            min(idle, key=lambda hold: hold.idle_since or 0.0).expire(
                SqlError(
                    "25P03",
                    f"the transaction held a snapshot and said nothing for {idle_s:g} s while others waited for a reading connection",
                    hint="End transactions that only read, too; autocommit ends each statement by itself.",
                )
            )

    def end_oldest(self, older_than_s: float, wal_bytes: int) -> bool:
        """End the oldest snapshot or statement, since it keeps the write-ahead log from being emptied; False when all are younger."""
        old = [hold for hold in self._holds if hold.ended is None and self.now() - hold.begun_s >= older_than_s]
        if old:
            min(old, key=lambda hold: hold.begun_s).expire(
                SqlError(
                    "25P04",
                    f"the snapshot kept {wal_bytes} bytes of changes from being moved into the database's file",
                    hint="Read in shorter transactions, or raise node.wal_limit_bytes.",
                )
            )
        return bool(old)

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
        prepared: Prepared = await self._examiner_worker.run(self._examiner.examine, sql)
        if schema_version == self._examined_version and len(sql) <= _EXAMINED_CHARACTERS:
            self._examined[sql] = prepared
            if len(self._examined) > _EXAMINED_STATEMENTS:
                self._examined.popitem(last=False)
        return prepared

    async def columns_of(self, table: str, schema_version: int) -> list[tuple[str, str]] | None:
        """Columns of a table as of now, remembered while the schema stays.

        Raises:
            SqlError: 57P01, the database has been closed.
        """
        self._check_open()
        if schema_version != self._columns_version:
            self._columns.clear()
            self._columns_version = schema_version
        if table not in self._columns:
            found = await self._examiner_worker.run(self._examiner.columns_of, table)
            if schema_version != self._columns_version or len(self._columns) >= _EXAMINED_STATEMENTS:
                return found
            self._columns[table] = found
        return self._columns[table]

    async def key_of(self, table: str) -> list[str]:
        """The columns of a table's primary key as of now. Raises SqlError 57P01, the database has been closed."""
        self._check_open()
        found: list[str] = await self._examiner_worker.run(self._examiner.key_of, table)
        return found

    async def aside(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Compute something on the thread that prepares statements.

        Raises:
            SqlError: 57P01, the database has been closed. And what the function raises.
        """
        self._check_open()
        return await self._examiner_worker.run(function, *arguments)

    def _check_open(self) -> None:
        # The examiner opens its connection when it is first asked: after the end that would leave one behind.
        if self._closed:
            raise _closing()

    async def close(self) -> None:
        """Close all connections; those in use when their work is done. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._look_timer is not None:
            self._look_timer.cancel()
        for waiting in self._waiting:
            if not waiting.granted.done():
                waiting.granted.set_exception(_closing())
        readers = [*self._all, self._examiner]
        for reader in readers:
            reader.closed, reader.stop.reason = True, _closing()
        for reader in readers:
            await reader.shut()
        for worker in (*self._workers, self._examiner_worker):
            await worker.close()
