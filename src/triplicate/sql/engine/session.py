"""One client's conversation with a database: transactions as PostgreSQL's clients know them, over readers and the writer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol

import apsw

from triplicate.config.node_settings import NodeSettings
from triplicate.errors import SqlError
from triplicate.runtime import shielded
from triplicate.sql.core.lexer import Dialect, first_words, split_statements
from triplicate.sql.core.records import StatementResult
from triplicate.sql.core.request_results import repeated_result
from triplicate.sql.engine.cursors import RowsCursor, StreamCursor
from triplicate.sql.engine.interactive_transaction import InteractiveTransaction
from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.executor.authorizer import control_statement, savepoint_name
from triplicate.sql.executor.interrupts import StopFlag
from triplicate.sql.executor.reader_pool import FIRST_ROWS, HeldSnapshot, ReaderPool
from triplicate.sql.executor.writer_connection import AutocommitRequest
from triplicate.sql.interface import Cursor, Prepared, Result, Row, SchemaMoved, StatementKind, TransactionStatus, Value
from triplicate.sql.storage.sqlite_schema import check_references, columns_of, key_of
from triplicate.sql.storage.transaction_history import StoredResult

_DRAINED_ROWS = 100_000
"""Rows of an open portal taken into memory when its transaction goes on to write."""
_REQUEST_ID_CHARACTERS = 200
_CHANGES = (StatementKind.WRITE, StatementKind.SCHEMA)


class SessionHome(Protocol):
    """What a session needs of its database."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> NodeSettings: ...

    @property
    def pool(self) -> ReaderPool: ...

    @property
    def leadership(self) -> Leadership | None: ...

    @property
    def leader_hint(self) -> str | None: ...

    @property
    def schema_version(self) -> int: ...

    def forget(self, session: SqlSession) -> None: ...


class SqlSession:
    """See `interface.Session`. Made by `SqlDatabase.session`."""

    def __init__(self, home: SessionHome, application_name: str) -> None:
        self._home = home
        self.application_name = application_name
        self._ended: asyncio.Future[SqlError] = asyncio.get_running_loop().create_future()
        self._end_reason: SqlError | None = None
        self._calls = 0
        self._status = TransactionStatus.IDLE
        self._doomed = False
        """Failed in a way that only ROLLBACK of the whole transaction mends."""
        self._hold: HeldSnapshot | None = None
        self._snapshot: int | None = None
        self._transaction: InteractiveTransaction | None = None
        self._leadership: Leadership | None = None
        """The leadership that `_transaction` belongs to."""
        self._savepoints: list[str] = []
        self._has_altered = False
        """The open transaction has changed the schema."""
        self._alterations = 0
        """Grows with each change of the schema in a transaction of this session, and when it is undone."""
        self._request_id = ""
        self._results: list[StatementResult] = []
        self._repeated: StoredResult | None = None
        self._streams: list[StreamCursor] = []
        self._stop = StopFlag()
        self._interrupted: asyncio.Future[None] | None = None

    # The interface.

    @property
    def status(self) -> TransactionStatus:
        return self._status

    @property
    def ended(self) -> asyncio.Future[SqlError]:
        return self._ended

    async def prepare(self, sql: str) -> Prepared:
        async with self._call():
            if self._status is TransactionStatus.FAILED:
                return _allowed_when_failed(sql)
            ended = self._ended_by_limit()
            if ended is not None:
                return _allowed_when_failed(sql, ended)
            leadership = self._home.leadership
            try:
                prepared = await self._examine(sql)
            except SqlError:
                if self._transaction is None:
                    await _confirm(leadership)  # "No such table" is an answer too: a leader that has been replaced must not give it.
                raise
            if prepared.kind in (*_CHANGES, StatementKind.BEGIN_IMMEDIATE):
                self._require_leader(prepared.tag)
            return prepared

    @property
    def sees_shared_schema(self) -> bool:
        return self._hold is None and self._transaction is None and self._status is not TransactionStatus.FAILED

    def check_prepared(self, prepared: Prepared) -> None:
        if self._end_reason is not None:
            raise self._end_reason
        if prepared.kind in (*_CHANGES, StatementKind.BEGIN_IMMEDIATE):
            try:
                self._require_leader(prepared.tag)
            except SqlError:
                self.fail()
                raise

    @property
    def schema_version(self) -> tuple[int, int]:
        leadership = self._leadership if self._transaction is not None else None
        version = self._home.schema_version if leadership is None else leadership.writer.current_schema_version
        return version, self._alterations

    async def start(self, prepared: Prepared, parameters: Sequence[Value], schema_version: tuple[int, int] | None = None) -> Cursor:
        async with self._call():
            kind = prepared.kind
            if self._status is TransactionStatus.FAILED and kind not in _WHEN_FAILED:
                raise _failed_transaction()
            if kind is StatementKind.READ:
                return await self._read(prepared, parameters)
            if kind in _CHANGES:
                return await self._change(prepared, parameters, None if schema_version is None else schema_version[0])
            await self._control(prepared)
            return RowsCursor()

    async def start_many(self, prepared: Prepared, parameter_rows: Sequence[Sequence[Value]]) -> list[int]:
        """Run one changing statement once for each row of parameters, with one hop to the writer for all. In a transaction only.

        Returns:
            Rows affected by each.

        Raises:
            SqlError: one failed, and with it the transaction.
        """
        async with self._call():
            if self._status is not TransactionStatus.ACTIVE:
                raise _failed_transaction() if self._status is TransactionStatus.FAILED else SqlError("25P01", "there is no transaction")
            held, leadership = await self._hold_writer(prepared.tag)
            if self._repeated is not None:
                return [self._repeat().rows_affected for _ in parameter_rows]
            await self._drain_streams()

            def run() -> list[int]:
                return [leadership.writer.run(prepared, parameters).rows_affected for parameters in parameter_rows]

            counts: list[int] = await held.run(run)
            self._results += [StatementResult(count) for count in counts]
            return counts

    async def table_columns(self, table: str) -> list[tuple[str, str]] | None:
        async with self._call():
            found: list[tuple[str, str]] | None
            if self._transaction is not None and self._leadership is not None and not self._transaction.over:
                found = await self._transaction.run(self._leadership.writer.query, columns_of, table)
            elif self._hold is not None:
                found = await self._hold.run(self._hold.reader.columns_of, table)
            else:
                found = await self._home.pool.columns_of(table, self._home.schema_version)
            return found

    async def table_key(self, table: str) -> list[str]:
        async with self._call():
            found: list[str]
            if self._transaction is not None and self._leadership is not None and not self._transaction.over:
                found = await self._transaction.run(self._leadership.writer.query, key_of, table)
            elif self._hold is not None:
                found = await self._hold.run(self._hold.reader.key_of, table)
            else:
                found = await self._home.pool.key_of(table)
            return found

    async def aside(self, function: Callable[..., Result], *arguments: Any) -> Result:
        async with self._call():
            return await self._home.pool.aside(function, *arguments)

    async def claim_writer(self, tag: str) -> None:
        async with self._call():
            if self._status is TransactionStatus.ACTIVE:
                await self._hold_writer(tag)

    async def check_constraints(self) -> None:
        async with self._call():
            if self._transaction is not None and self._leadership is not None:
                await self._transaction.run(self._leadership.writer.query, lambda connection, _: check_references(connection), "")

    def fail(self) -> None:
        if self._status is TransactionStatus.ACTIVE:
            self._status = TransactionStatus.FAILED

    async def set_request_id(self, request_id: str | None) -> None:
        if request_id is not None and not 0 < len(request_id) <= _REQUEST_ID_CHARACTERS:
            raise SqlError("22023", f"a request id has 1 to {_REQUEST_ID_CHARACTERS} characters")
        if self._transaction is not None:
            raise SqlError("25001", "a request id must be set before the transaction writes")
        self._request_id = request_id or ""

    def cancel(self) -> None:
        reason = SqlError("57014", "canceling statement due to user request")
        if not self._calls:
            return
        self._stop.reason = reason
        if self._transaction is not None:
            self._transaction.interrupt(reason)
        if self._interrupted is not None and not self._interrupted.done():
            self._interrupted.set_exception(reason)
            self._interrupted.exception()

    async def close(self) -> None:
        self._end_reason = self._end_reason or SqlError("08003", "the session is closed")
        await shielded(self._release(committed=False))
        self._home.forget(self)

    def end(self, reason: SqlError) -> None:
        """End the session from our side; a statement that runs gets its own answer first."""
        if self._end_reason is not None:
            return
        self._end_reason = reason
        if self._transaction is not None:
            self._transaction.abandon()
        self._stop.reason = reason
        self._tell_end()

    def _tell_end(self) -> None:
        if self._end_reason is not None and not self._calls and not self._ended.done():
            self._ended.set_result(self._end_reason)

    @asynccontextmanager
    async def _call(self) -> AsyncIterator[None]:
        """Around every call of the client: a closed session refuses, an error fails the open transaction."""
        if self._end_reason is not None:
            raise self._end_reason
        self._calls += 1
        self._stop = StopFlag()
        try:
            yield
        except SqlError:
            if self._status is TransactionStatus.ACTIVE:
                self._status = TransactionStatus.FAILED
            if self._transaction is not None and self._transaction.over:
                self._doomed = True
            raise
        except BaseException:
            # Cancelled in the middle: whatever was begun must not be committed by a later call.
            if self._status is TransactionStatus.ACTIVE:
                self._status = TransactionStatus.FAILED
            raise
        finally:
            self._calls -= 1
            self._tell_end()

    # Statements.

    def _ended_by_limit(self) -> SqlError | None:
        """Why the open transaction has been ended from our side, if it has been and its client does not know."""
        if self._transaction is not None:
            return self._transaction.expired
        return self._hold.ended if self._hold is not None else None

    async def _examine(self, sql: str) -> Prepared:
        if self._transaction is not None and self._leadership is not None:
            prepared: Prepared = await self._transaction.run(self._leadership.writer.authorizer.examine, sql)
            return prepared
        if self._hold is not None:
            snapshot: Prepared = await self._hold.run(self._hold.reader.examine, sql)
            return snapshot
        return await self._home.pool.examine(sql, self._home.schema_version)

    def _require_leader(self, tag: str) -> Leadership:
        leadership = self._home.leadership
        if leadership is None:
            leader = self._home.leader_hint
            raise SqlError(
                "25006",
                f"cannot execute {tag} on this node: it follows and is read-only",
                hint=f"The leader is at {leader}." if leader else "No leader is known at the moment; try again.",
            )
        return leadership

    async def _change(self, prepared: Prepared, parameters: Sequence[Value], schema_version: int | None) -> Cursor:
        if self._status is TransactionStatus.IDLE:
            leadership = self._require_leader(prepared.tag)
            request_id, self._request_id = self._request_id, ""
            try:
                answer = await leadership.submit(AutocommitRequest(prepared, tuple(parameters), request_id, self._stop, schema_version))
            except SchemaMoved:
                self._request_id = request_id  # It names what is run in its place.
                raise
            assert answer.outcome is not None, "an answer without error has an outcome"
            return RowsCursor(prepared.columns, answer.outcome.rows, answer.outcome.rows_affected)
        held, leadership = await self._hold_writer(prepared.tag)
        if self._repeated is not None:
            again = self._repeat()
            return RowsCursor(prepared.columns, list(again.rows), again.rows_affected)
        await self._drain_streams()
        outcome = await held.run(leadership.writer.run, prepared, tuple(parameters))
        if prepared.kind is StatementKind.SCHEMA:
            self._has_altered = True
            self._alterations += 1
        self._results.append(StatementResult(outcome.rows_affected, tuple(outcome.rows) if self._request_id else ()))
        return RowsCursor(prepared.columns, outcome.rows, outcome.rows_affected)

    def _repeat(self) -> StatementResult:
        """The stored answer to the next statement of a request that has run before."""
        assert self._repeated is not None, "only called for a repeat"
        result = repeated_result(self._repeated.results, len(self._results))
        self._results.append(result)
        return result

    async def _hold_writer(self, tag: str) -> tuple[InteractiveTransaction, Leadership]:
        """The writer, from the first statement of the transaction that needs it."""
        if self._transaction is not None and self._leadership is not None:
            return self._transaction, self._leadership
        leadership = self._require_leader(tag)
        if self._hold is not None and self._hold.ended is not None:
            raise self._hold.ended
        # What is open reads the snapshot, which ends with the reader: in other hands that would go on showing it.
        await self._drain_streams()
        # The number goes along before the wait: a snapshot that ends meanwhile must not note it as one that came to nothing.
        number = self._hold.take_number() if self._hold is not None else None
        self._interrupted = asyncio.get_running_loop().create_future()
        try:
            self._transaction = await leadership.claim(self._snapshot, number, self._interrupted)
        except BaseException as error:
            if self._hold is not None:
                self._hold.put_number_back(number, leadership.ids)
            self._doomed = isinstance(error, SqlError) and error.sqlstate == "40001"
            raise
        finally:
            self._interrupted.cancel()
            self._interrupted = None
        self._leadership = leadership
        await self._release_hold(committed=False)
        try:
            for name in self._savepoints:
                await self._transaction.run(leadership.writer.savepoint, name)
            if self._request_id:
                self._repeated = await self._transaction.run(leadership.writer.stored_result, self._request_id)
        except BaseException:
            # Behind a savepoint the transaction would go on, and a request that must not run again would.
            self._doomed = True
            raise
        return self._transaction, leadership

    async def _read(self, prepared: Prepared, parameters: Sequence[Value]) -> Cursor:
        if self._transaction is not None and self._leadership is not None:
            return await self._read_on_writer(self._transaction, self._leadership, prepared, parameters)
        # The leadership that the client came to, whatever becomes of it until the snapshot is there.
        leadership = self._home.leadership
        if self._status is TransactionStatus.ACTIVE:
            hold = self._hold or await self._take_snapshot(leadership)
            return await self._read_on(hold, prepared, parameters, own=False)
        cursor = await self._read_on(await self._home.pool.acquire(), prepared, parameters, own=True)
        try:
            await _confirm(leadership)
        except BaseException:
            await shielded(cursor.close())
            raise
        return cursor

    async def _take_snapshot(self, leadership: Leadership | None) -> HeldSnapshot:
        """Begin to read in the transaction. One that was not confirmed is let go: behind a savepoint it would be read."""
        hold = await self._home.pool.acquire(snapshot=True)
        try:
            snapshot = await hold.run(hold.reader.begin)
            await _confirm(leadership)
        except BaseException:
            await shielded(hold.release(committed=False))
            raise
        self._hold, self._snapshot = hold, snapshot
        return hold

    async def _read_on(self, hold: HeldSnapshot, prepared: Prepared, parameters: Sequence[Value], *, own: bool) -> Cursor:
        stop = self._stop
        try:
            cursor, rows = await hold.run(hold.reader.start, prepared, tuple(parameters), stop, stop=stop)
        except BaseException:
            if own:
                hold.give_back(committed=False)
            raise
        if cursor is None:
            if own:
                hold.give_back(committed=True)
            return RowsCursor(prepared.columns, rows)

        async def more(max_rows: int) -> list[Row]:
            async with self._call():
                fetched: list[Row] = await hold.run(hold.reader.fetch, cursor, max_rows, self._stop, stop=self._stop)
                return fetched

        async def finish() -> None:
            self._streams.remove(stream)
            await hold.close_cursor(cursor)
            if own:
                hold.give_back(committed=True)

        stream = StreamCursor(prepared.columns, rows, more, finish)
        self._streams.append(stream)
        return stream

    async def _read_on_writer(
        self, held: InteractiveTransaction, leadership: Leadership, prepared: Prepared, parameters: Sequence[Value]
    ) -> Cursor:
        writer = leadership.writer
        cursor: apsw.Cursor = await held.run(writer.read, prepared, tuple(parameters))
        fetch: Callable[[int], Awaitable[list[Row]]] = partial(held.run, writer.fetch, cursor)
        rows = await fetch(FIRST_ROWS)
        if not held.confirmed:
            await leadership.confirm()
            held.confirmed = True
        if len(rows) < FIRST_ROWS:
            await held.run(cursor.close, True)
            return RowsCursor(prepared.columns, rows)

        async def more(max_rows: int) -> list[Row]:
            async with self._call():
                return await fetch(max_rows)

        async def finish() -> None:
            self._streams.remove(stream)
            if not held.over:
                await shielded(held.run(cursor.close, True))

        stream = StreamCursor(prepared.columns, rows, more, finish)
        self._streams.append(stream)
        return stream

    async def _drain_streams(self) -> None:
        """Take open results into memory before the transaction goes on to change what they read."""
        for stream in list(self._streams):
            if not await stream.drain(_DRAINED_ROWS):
                raise SqlError("54000", f"an open result of this transaction has more than {_DRAINED_ROWS} rows; read it to its end first")

    # Transactions.

    async def _control(self, prepared: Prepared) -> None:
        kind = prepared.kind
        if kind in (StatementKind.BEGIN, StatementKind.BEGIN_IMMEDIATE):
            await self._begin(immediate=kind is StatementKind.BEGIN_IMMEDIATE)
        elif kind is StatementKind.COMMIT:
            await self._commit()
        elif kind is StatementKind.ROLLBACK:
            await shielded(self._release(committed=False))
        elif kind is not StatementKind.EMPTY:
            if self._status is TransactionStatus.IDLE:
                raise SqlError("25P01", f"{prepared.tag} can only be used in transaction blocks")
            await self._savepoint(kind, savepoint_name(prepared.sql))

    async def _begin(self, *, immediate: bool) -> None:
        if self._status is TransactionStatus.ACTIVE:
            return  # PostgreSQL warns and goes on.
        self._status = TransactionStatus.ACTIVE
        self._results = []
        if immediate:
            try:
                await self._hold_writer("BEGIN IMMEDIATE")
            except BaseException:
                await shielded(self._release(committed=False))  # It has not begun.
                raise

    async def _commit(self) -> None:
        if self._status is not TransactionStatus.ACTIVE:
            await shielded(self._release(committed=False))
            return
        held = self._transaction
        try:
            await self._drain_streams()
            if held is not None and self._repeated is not None:
                await held.rollback()
            elif held is not None:
                await held.commit(self._results, self._request_id)
        finally:
            await shielded(self._release(committed=True))

    async def _savepoint(self, kind: StatementKind, name: str) -> None:
        if self._doomed:
            raise _failed_transaction()
        held, leadership = self._transaction, self._leadership
        if kind is StatementKind.SAVEPOINT:
            if held is not None and leadership is not None:
                await held.run(leadership.writer.savepoint, name)
            self._savepoints.append(name)
            return
        if name not in self._savepoints:
            raise SqlError("3B001", f'savepoint "{name}" does not exist')
        if kind is StatementKind.ROLLBACK_TO:
            await self._close_streams()
        if held is not None and leadership is not None:
            writer = leadership.writer
            await held.run(writer.release if kind is StatementKind.RELEASE else writer.rollback_to, name)
        index = len(self._savepoints) - 1 - self._savepoints[::-1].index(name)
        del self._savepoints[index + (kind is StatementKind.ROLLBACK_TO) :]
        # A version of the schema that is undone is given out again, for another schema.
        self._alterations += self._has_altered
        self._status = TransactionStatus.ACTIVE

    # Letting go.

    async def _release(self, *, committed: bool) -> None:
        """End whatever is open; what was not committed is rolled back."""
        held, self._transaction = self._transaction, None
        self._leadership = None
        if held is not None and not held.over:
            await self._roll_back(held)
        await self._close_streams()
        await self._release_hold(committed=committed)
        self._savepoints = []
        self._alterations += self._has_altered
        self._has_altered = False
        self._results = []
        self._repeated = None
        if self._status is not TransactionStatus.IDLE:
            self._request_id = ""
        self._status = TransactionStatus.IDLE
        self._doomed = False

    async def _roll_back(self, held: InteractiveTransaction) -> None:
        try:
            await held.rollback()
        except SqlError:
            return  # The leadership ended, and the transaction with it.

    async def _close_streams(self) -> None:
        for stream in list(self._streams):
            await stream.close()

    async def _release_hold(self, *, committed: bool) -> None:
        hold, self._hold = self._hold, None
        self._snapshot = None
        if hold is not None:
            await hold.release(committed=committed)


async def _confirm(leadership: Leadership | None) -> None:
    """On the leader, reads see everything that was acknowledged anywhere before they arrived. Called when the snapshot is there."""
    if leadership is not None:
        await leadership.confirm()


_WHEN_FAILED = (StatementKind.COMMIT, StatementKind.ROLLBACK, StatementKind.ROLLBACK_TO, StatementKind.EMPTY)


def _failed_transaction() -> SqlError:
    return SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")


def _allowed_when_failed(sql: str, reason: SqlError | None = None) -> Prepared:
    """In a failed transaction nothing is looked at but its end.

    Raises:
        SqlError: 25P02, or the reason.
    """
    statements = split_statements(sql, Dialect.SQLITE)
    if not statements:
        return Prepared("", StatementKind.EMPTY, (), (), "")
    control = control_statement(statements[0].sql, first_words(statements[0].tokens))
    if control is None or control.kind not in _WHEN_FAILED:
        raise reason or _failed_transaction()
    return control
