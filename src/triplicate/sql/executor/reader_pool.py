"""Reading connections: a bounded pool, each with its own view of the database, run on a few threads."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.runtime import Host, Timer, deadline_after, fail, has_result, own_task, resolve, shielded, timeout_at
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.interface import Prepared, Row
from triplicate.sql.core.statement_waits import StatementWaits
from triplicate.sql.executor.examined_schema import NewestSchema
from triplicate.sql.executor.interrupts import StopFlag
from triplicate.sql.executor.loop_reader import LoopReader
from triplicate.sql.executor.reader_connection import ReaderConnection, closing_error
from triplicate.sql.executor.statement_examiner import StatementExaminer
from triplicate.sql.executor.threads import ThreadPerWorker, WorkerThreads
from triplicate.sql.executor.transaction_functions import TransactionIds
from triplicate.sql.storage.sqlite_file import ConnectionSetup

_CHECK_INTERVAL = 0.25
"""Interval of the checks of limits, as a fraction of the shortest limit."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Bounds of one database's reading connections; see the settings of a node."""

    connections: int
    threads: int
    wait_s: float
    idle_s: float = 60.0
    snapshot_s: float = 3600.0


class ReaderCheckout:
    """A reader that one session has: for one statement, for a transaction's snapshot, or while a result is open.

    It ends with `release`, or when a limit is reached. A limit interrupts the statement that runs and ends the snapshot; every further
    `run` raises the error that says why.
    """

    def __init__(self, pool: ReaderPool, reader: ReaderConnection, now: float, *, snapshot: bool) -> None:
        self._pool = pool
        self.reader = reader
        self.begun_s = now
        self.snapshot = snapshot
        """Whether it is for a transaction; some readers are reserved for single statements."""
        self.idle_since: float | None = None
        """Time of the end of its last statement; None while one runs."""
        self._stop: StopFlag | None = None
        self._returned = False
        self._cancelled = False
        """Whether a caller was cancelled. Its statement may be open, and nobody knows its cursor."""
        self.ended: SqlError | None = None
        """Why a limit ended it, or None."""

    async def run(self, function: Callable[..., Any], *arguments: Any, stop: StopFlag | None = None) -> Any:
        """Run one of the reader's methods, see `ReaderConnection.run`.

        Raises:
            SqlError: 25P03, 25P04: a limit was reached.
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
                self._discard()

    def begin_now(self) -> int | None:
        """Begin the snapshot on the loop; its position, or None where the reader's thread must do it. Raises SqlError as `run`."""
        return self.reader.begin_now() if self._is_ready() else None

    def read_now(self, prepared: Prepared, parameters: Sequence[Value], schema_version: int) -> list[Row] | None:
        """Run a short statement on the loop, see `LoopReader.read`. Raises SqlError as `run`."""
        if not prepared.is_measured or not self._is_ready() or not self._pool.long.admits(prepared.sql, schema_version):
            return None
        try:
            rows = self.reader.read_now(prepared, parameters)
        except (apsw.BusyError, apsw.LockedError):
            return None
        finally:
            self.idle_since = self._pool.now()
        if rows is None:
            self._pool.long.exceeded(prepared.sql, schema_version)
        return rows

    def examine_now(self, sql: str) -> Prepared | None:
        """Check a short statement on the loop, see `LoopReader.examine`. Raises SqlError as `run`."""
        if not self._is_ready():
            return None
        try:
            return self.reader.examine_now(sql)
        finally:
            self.idle_since = self._pool.now()

    def _is_ready(self) -> bool:
        """Whether the connection can be used on the loop: it has been opened, and nothing of this checkout runs on its thread."""
        if self.ended is not None:
            raise self.ended
        if self.reader.closed:
            raise closing_error()
        return self.reader.is_open and self._stop is None

    def expire(self, reason: SqlError) -> None:
        """End it because of a limit."""
        if self.ended is not None or self._returned:
            return
        self.ended = reason
        if self._stop is None:
            self._discard()
        elif self._stop.reason is None:
            self._stop.reason = reason

    def _discard(self) -> None:
        if not self._returned:
            self._returned = True
            self._finish_number(committed=False)
            self._pool.reset(self)

    async def close_cursor(self, cursor: apsw.Cursor) -> None:
        """Close an open statement, unless all of them were closed with the checkout."""
        if self.ended is None and not self.reader.closed:
            await shielded(self.run(cursor.close, True))

    async def release(self, *, committed: bool) -> None:
        """End the snapshot and return the reader to the pool. Idempotent.

        Args:
            committed: the outcome of the transaction, for the number it may have drawn.
        """
        if self._returned:
            return
        if not self.release_now(committed=committed):
            if self.snapshot and not self.reader.closed:
                await shielded(self.run(self.reader.end))
            self.return_reader(committed=committed)

    def release_now(self, *, committed: bool) -> bool:
        """As `release`, without a wait. Returns whether that was possible."""
        if self._returned:
            return True
        if self.ended is not None or self.reader.closed or self._stop is not None:
            return False
        if self.snapshot and self.reader.is_open:
            self.reader.end()
        self.return_reader(committed=committed)
        return True

    def return_reader(self, *, committed: bool) -> None:
        """As `release`, without a snapshot or an open statement."""
        if not self._returned:
            self._returned = True
            self._finish_number(committed=committed)
            if self._cancelled:
                self._pool.reset(self)  # An open statement would show its old snapshot to the next session.
            else:
                self._pool.check_in(self)

    async def give_back(self, *, committed: bool) -> None:
        """End the checkout of one statement, even if the caller is cancelled."""
        if self.snapshot:
            await shielded(self.release(committed=committed))
        else:
            self.return_reader(committed=committed)

    def detach_number(self) -> int | None:
        """The transaction's number, if it has drawn one. From now on the caller records its outcome."""
        number, self.reader.context.number = self.reader.context.number, None
        return number

    def reattach_number(self, number: int | None, ids: TransactionIds) -> None:
        """The transaction did not get the writer. Its number is aborted with the snapshot, or now when the snapshot has ended."""
        if not self._returned:
            self.reader.context.number = number
        elif number is not None:
            ids.finish(number, committed=False)

    def _finish_number(self, *, committed: bool) -> None:
        number, ids = self.reader.context.number, self.reader.context.ids
        if number is not None and ids is not None:
            ids.finish(number, committed=committed)
        self.reader.context.number = None


@dataclass(slots=True)
class _Waiting:
    snapshot: bool
    granted: asyncio.Future[ReaderCheckout]


class ReaderPool:
    """Checks readers out, first come first served, and ends checkouts that last too long.

    A quarter of the readers is reserved for single statements, which end by themselves; a transaction's snapshot lasts until its
    client ends it. When a session has waited for half of the longest wait, the checkout that has been idle for longest is ended. So an
    idle client does not keep others from reading.
    """

    def __init__(
        self,
        host: Host,
        name: str,
        path: str,
        limits: ReadLimits,
        setup: ConnectionSetup | None = None,
        threads: WorkerThreads | None = None,
    ) -> None:
        threads = threads if threads is not None else ThreadPerWorker(host)
        self._host = host
        self._clock = host.clock
        self._workers = [threads.reader(name, number) for number in range(limits.threads)]
        self._path = path
        self._setup = setup
        self._schema = NewestSchema()
        self._limits = limits
        self._for_snapshots = limits.connections - limits.connections // 4
        self._free: list[ReaderConnection] = []
        self._all: list[ReaderConnection] = []
        self._checkouts: set[ReaderCheckout] = set()
        self._waiting: deque[_Waiting] = deque()
        self._check_timer: Timer | None = None
        self._loop_reader = LoopReader(path, setup, self._schema)
        self.long = self._loop_reader.long
        self.examiner = StatementExaminer(threads.examiner(name), path, setup, self._loop_reader, self._schema)
        self._closed = False
        self.ids: TransactionIds | None = None
        """Transaction ids of the leadership of this node, for the functions on the readers; None while it follows."""

    def now(self) -> float:
        return self._clock.monotonic()

    @property
    def oldest_snapshot_s(self) -> float:
        """Age of the oldest snapshot or statement, in seconds; 0 when there is none."""
        return max((self.now() - checkout.begun_s for checkout in self._checkouts), default=0.0)

    def read_now(self, prepared: Prepared, parameters: Sequence[Value], schema_version: int) -> list[Row] | None:
        """All rows of a short statement, which runs in the caller; see `LoopReader.read`.

        Raises:
            SqlError: 57P01, the database has been closed.
        """
        if self._closed:
            raise closing_error()
        return self._loop_reader.read(prepared, parameters, schema_version)

    async def acquire(self, waits: StatementWaits | None = None, *, snapshot: bool = False) -> ReaderCheckout:
        """Check a reader out, until `ReaderCheckout.release`.

        Args:
            waits: the wait for a reader is added to these.
            snapshot: for a transaction, and not for a single statement.

        Raises:
            SqlError: 53300 when none becomes free in time; 57P01, the database has been closed.
        """
        self._check_open()
        if self._can_check_out(snapshot=snapshot):
            return self._check_out(snapshot=snapshot)
        began_s = self.now()
        try:
            return await self._wait(_Waiting(snapshot, asyncio.get_running_loop().create_future()))
        finally:
            if waits is not None:
                waits.read_s += self.now() - began_s

    def _can_check_out(self, *, snapshot: bool) -> bool:
        if snapshot and sum(checkout.snapshot for checkout in self._checkouts) >= self._for_snapshots:
            return False
        return bool(self._free) or len(self._all) < self._limits.connections

    def _check_out(self, *, snapshot: bool) -> ReaderCheckout:
        reader = self._choose_reader()
        reader.context.ids = self.ids
        reader.context.number = None
        checkout = ReaderCheckout(self, reader, self.now(), snapshot=snapshot)
        self._checkouts.add(checkout)
        if self._check_timer is None:
            self._schedule_check()
        return checkout

    def _choose_reader(self) -> ReaderConnection:
        """A reader on the thread with the fewest checkouts, so that no session waits for a long statement while a thread is free."""
        busy = Counter(id(checkout.reader.worker) for checkout in self._checkouts)
        worker = min(self._workers, key=lambda one: busy[id(one)])
        quietest = min(self._free, key=lambda reader: busy[id(reader.worker)], default=None)
        if quietest is not None and (busy[id(quietest.worker)] == busy[id(worker)] or len(self._all) >= self._limits.connections):
            self._free.remove(quietest)
            return quietest
        reader = ReaderConnection(worker, self._path, self._setup, self._schema)
        self._all.append(reader)
        return reader

    async def _wait(self, waiting: _Waiting) -> ReaderCheckout:
        await own_task()  # The messages of a client are served outside of one.
        self._check_open()
        if self._can_check_out(snapshot=waiting.snapshot):
            return self._check_out(snapshot=waiting.snapshot)
        self._waiting.append(waiting)
        wait_s = self._limits.wait_s
        timer = self._clock.call_at(self.now() + wait_s / 2, self._end_longest_idle, wait_s / 2)
        try:
            async with timeout_at(deadline_after(self._clock, wait_s)):
                return await waiting.granted
        except TimeoutError:
            if has_result(waiting.granted):
                return waiting.granted.result()  # It was granted in the same turn of the loop.
            raise SqlError(
                "53300",
                f"all {self._limits.connections} reading connections of this database are in use",
                detail=f"{self._for_snapshots} of them may be used by transactions, the others by single statements.",
            ) from None
        except asyncio.CancelledError:
            if has_result(waiting.granted):
                waiting.granted.result().return_reader(committed=False)
            raise
        finally:
            timer.cancel()
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    def check_in(self, checkout: ReaderCheckout) -> None:
        """For `ReaderCheckout`: the reader is free, with no snapshot and no open statement."""
        self._checkouts.discard(checkout)
        self._free.append(checkout.reader)
        for waiting in list(self._waiting):
            if waiting.granted.done():
                self._waiting.remove(waiting)
            elif self._can_check_out(snapshot=waiting.snapshot):
                self._waiting.remove(waiting)
                resolve(waiting.granted, self._check_out(snapshot=waiting.snapshot))

    def reset(self, checkout: ReaderCheckout) -> None:
        """For `ReaderCheckout`: close the reader's connection, with what is open on it, then check it in."""
        if checkout.reader.closed:
            self._checkouts.discard(checkout)
            return

        def closed(closing: asyncio.Future[None]) -> None:
            error = closing.exception()
            if error is not None:  # The connection is not used again in any case.
                self._host.trace("sql.reader_not_closed", error=repr(error))
            self.check_in(checkout)

        checkout.reader.shut().add_done_callback(closed)

    # Limits.

    def _schedule_check(self) -> None:
        shortest_s = min(self._limits.idle_s, self._limits.snapshot_s)
        self._check_timer = self._clock.call_at(self.now() + shortest_s * _CHECK_INTERVAL, self._expire_old)

    def _expire_old(self) -> None:
        """End checkouts that are idle for too long, or too old."""
        self._check_timer = None
        now, limits = self.now(), self._limits
        for checkout in list(self._checkouts):
            if now - checkout.begun_s >= limits.snapshot_s:
                checkout.expire(
                    SqlError(
                        "25P04",
                        f"the statement or snapshot was older than {limits.snapshot_s:g} s",
                        hint="Read in shorter transactions, or raise node.snapshot_limit_s.",
                    )
                )
            elif checkout.idle_since is not None and now - checkout.idle_since >= limits.idle_s:
                checkout.expire(
                    SqlError(
                        "25P03",
                        f"the transaction held a snapshot and said nothing for {limits.idle_s:g} s",
                        hint="End transactions that only read, too; autocommit ends each statement by itself.",
                    )
                )
        if self._checkouts and not self._closed:
            self._schedule_check()

    def _end_longest_idle(self, idle_s: float) -> None:
        """A session has waited for `idle_s` seconds: end the longest idle checkout, if it was idle for all of that time."""
        idle = [checkout for checkout in self._checkouts if checkout.idle_since is not None and self.now() - checkout.idle_since >= idle_s]
        if idle:
            min(idle, key=lambda checkout: checkout.idle_since or 0.0).expire(
                SqlError(
                    "25P03",
                    f"the transaction held a snapshot and said nothing for {idle_s:g} s while others waited for a reading connection",
                    hint="End transactions that only read, too; autocommit ends each statement by itself.",
                )
            )

    def end_oldest(self, older_than_s: float, wal_bytes: int) -> bool:
        """End the oldest snapshot or statement, which keeps the write-ahead log from being emptied; False when all are younger.

        Args:
            wal_bytes: size of the write-ahead log, for the message.
        """
        old = [checkout for checkout in self._checkouts if checkout.ended is None and self.now() - checkout.begun_s >= older_than_s]
        if old:
            min(old, key=lambda checkout: checkout.begun_s).expire(
                SqlError(
                    "25P04",
                    f"the snapshot kept {wal_bytes} bytes of changes from being moved into the database's file",
                    hint="Read in shorter transactions, or raise node.wal_limit_bytes.",
                )
            )
        return bool(old)

    def _check_open(self) -> None:
        if self._closed:
            raise closing_error()

    async def close(self) -> None:
        """Close all connections; those in use once their work is done. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._check_timer is not None:
            self._check_timer.cancel()
        for waiting in self._waiting:
            fail(waiting.granted, closing_error())
        self.examiner.refuse()
        self._loop_reader.refuse()
        for reader in self._all:
            reader.refuse()
        for reader in self._all:
            await reader.shut()
        # The last connection that is closed moves the write-ahead log into the file, which syncs it.
        await self._workers[0].run(self._loop_reader.close)
        for worker in self._workers:
            await worker.close()
        await self.examiner.close()
