"""One client's session with a database: transactions as PostgreSQL's clients know them, over readers and the writer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.runtime import fail, fault_point, resolve, shielded
from triplicate.sql.core.access_rights import AccessRights
from triplicate.sql.core.audit import IN_PROCESS, ConnectedClient
from triplicate.sql.core.interface import CheckRows, Cursor, Prepared, Result, Row, SchemaMoved, SpecialColumns, StatementKind, Value
from triplicate.sql.core.read_levels import DEFAULT_READS, ReadSettings
from triplicate.sql.core.request_ids import own_request_id
from triplicate.sql.core.session_counters import SessionCounters
from triplicate.sql.core.session_roles import SessionRoles
from triplicate.sql.core.statement_results import StatementResult
from triplicate.sql.core.statement_waits import StatementWaits
from triplicate.sql.core.transaction_block import TransactionBlock, TransactionStatus, failed_transaction
from triplicate.sql.engine.bulk_change import SqlBulkChange
from triplicate.sql.engine.cursors import RowsCursor
from triplicate.sql.engine.interactive_transaction import InteractiveTransaction
from triplicate.sql.engine.leadership import Leadership
from triplicate.sql.engine.open_results import OpenResults
from triplicate.sql.engine.past_reads import PastReads
from triplicate.sql.engine.read_admission import ReadAdmission, check_schema, confirm
from triplicate.sql.engine.rights_check import RightsCheck, verifier_text
from triplicate.sql.engine.session_database import HeldWriter, SessionDatabase, required_leadership, table_facts, unless_stopped
from triplicate.sql.executor.authorizer import WHEN_FAILED, allowed_when_failed, savepoint_name
from triplicate.sql.executor.interrupts import StopFlag
from triplicate.sql.executor.reader_connection import ReaderConnection
from triplicate.sql.executor.reader_pool import ReaderCheckout
from triplicate.sql.executor.short_reads import FIRST_ROWS
from triplicate.sql.executor.statement_batches import AutocommitRequest, StatementOutcome
from triplicate.sql.storage.sqlite_schema import check_references, columns_of, special_columns_of
from triplicate.sql.storage.transaction_history import StoredResult

_EXAMINED_CHARACTERS = 1000
"""Length of the longest statement that is examined on the loop, where the session holds the writer."""
_CHANGES = (StatementKind.WRITE, StatementKind.SCHEMA)
_READ, _IDLE, _FAILED = StatementKind.READ, TransactionStatus.IDLE, TransactionStatus.FAILED


class _Call:
    """Around every call of the client: an ended session refuses, an error fails the open transaction."""

    __slots__ = ("_session", "counters")

    def __init__(self, session: SqlSession) -> None:
        self._session, self.counters = session, SessionCounters()

    def __enter__(self) -> None:
        session = self._session
        if session._end_reason is not None:
            raise session._end_reason
        session._calls += 1
        session._stop = StopFlag()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        session = self._session
        if error is not None and kind is not SchemaMoved:
            # A call that was cancelled halfway fails the transaction too: a later call must not commit what it began.
            lost = isinstance(error, SqlError) and session._held is not None and session._held.transaction.over
            session._block.fail(doomed=lost)
        session._calls -= 1
        if session._end_reason is not None:
            session._resolve_ended()


class SqlSession:
    """See `interface.Session`. Made by `SqlDatabase.session`."""

    def __init__(
        self, database: SessionDatabase, application_name: str, client: ConnectedClient = IN_PROCESS, roles: SessionRoles | None = None
    ) -> None:
        self._database = database
        self.application_name = application_name
        self.client = client
        self.waits = StatementWaits(database.clock.monotonic)
        self.roles = roles if roles is not None else SessionRoles(client.role, is_administrator=True)
        self._rights = RightsCheck(database, client, self.roles)
        self._ended: asyncio.Future[SqlError] = asyncio.get_running_loop().create_future()
        self._end_reason: SqlError | None = None
        self._calls = 0
        self._call = _Call(self)
        self._block = TransactionBlock()
        self.go_on = self._block.go_on
        """After a SqlError, go on with the open transaction as it was before the statement, unless it has ended with it."""
        self._checkout: ReaderCheckout | None = None
        """The reader of the open transaction, while it only reads."""
        self._snapshot: int | None = None
        """The position at which the open transaction has read."""
        self._held: HeldWriter | None = None
        self._reads = ReadAdmission(database, self.waits)
        self._results = OpenResults(self._call, self._block.innermost_savepoint)
        self._stop = StopFlag()
        self._interrupted: asyncio.Future[None] | None = None
        """Fails when the client cancels, while the session waits for the writer."""
        self._past = PastReads(self.waits)

    # The interface.

    @property
    def status(self) -> TransactionStatus:
        return self._block.status

    @property
    def stored_role(self) -> str | None:
        return self.roles.stored_role

    @property
    def writer_use(self) -> str:
        return "holds" if self._held is not None else "waits" if self._interrupted is not None else ""

    @property
    def ended(self) -> asyncio.Future[SqlError]:
        return self._ended

    async def prepare(self, sql: str) -> Prepared:
        with self._call:
            if self.status is TransactionStatus.FAILED:
                return allowed_when_failed(sql)
            if (ended := self._ended_by_limit()) is not None:
                return allowed_when_failed(sql, ended)
            leadership = self._database.leadership
            try:
                prepared = await self._examine(sql)
            except SqlError:
                if self._held is None:
                    await self._reads.admit_refusal(leadership, has_snapshot=self._checkout is not None)
                prepared = await self._examine(sql)
            if prepared.kind in (*_CHANGES, StatementKind.BEGIN_IMMEDIATE):
                required_leadership(self._database, prepared.tag)
            return prepared

    def innermost_savepoint(self) -> int:
        return self._block.innermost_savepoint()

    @property
    def sees_shared_schema(self) -> bool:
        if self._checkout is not None or self._block.status is TransactionStatus.FAILED or self._database.as_of is not None:
            return False
        return self._held is None or not self._held.writer.has_altered_schema

    def check_prepared(self, prepared: Prepared) -> None:
        if self._end_reason is not None:
            raise self._end_reason
        try:
            if (ended := self._ended_by_limit()) is not None and prepared.kind not in WHEN_FAILED:
                raise ended
            if prepared.kind in (*_CHANGES, StatementKind.BEGIN_IMMEDIATE):
                required_leadership(self._database, prepared.tag)
        except SqlError:
            self._block.fail(doomed=self._held is not None and self._held.transaction.over)
            raise

    @property
    def schema_version(self) -> tuple[int, int]:
        version = self._database.schema_version if self._held is None else self._held.writer.current_schema_version
        return version, self._block.alterations

    async def start(
        self,
        prepared: Prepared,
        parameters: Sequence[Value],
        schema_version: tuple[int, int] | None = None,
        check_rows: CheckRows | None = None,
    ) -> Cursor:
        with self._call:
            kind, version = prepared.kind, None if schema_version is None else schema_version[0]
            if self._block.status is _FAILED and kind not in WHEN_FAILED:
                raise failed_transaction()
            prepared = self._call.counters.bound(prepared)
            if kind is _READ:
                return await self._read_as(self.roles.acting, prepared, parameters, version)
            if kind in _CHANGES:
                return await self._change(prepared, parameters, version, check_rows)
            await self._control(prepared)
            return RowsCursor()

    async def table_columns(self, table: str) -> list[tuple[str, str]] | None:
        with self._call:
            examined = partial(self._database.pool.examiner.columns_of, table, self._database.schema_version)
            return await table_facts(self._held, self._checkout, columns_of, ReaderConnection.columns_of, examined, table)

    async def special_columns(self, table: str) -> SpecialColumns:
        with self._call:
            reader, examined = ReaderConnection.special_columns_of, partial(self._database.pool.examiner.special_columns_of, table)
            return await table_facts(self._held, self._checkout, special_columns_of, reader, examined, table)

    async def offload(self, function: Callable[..., Result], *arguments: Any) -> Result:
        with self._call:
            return await unless_stopped(self._stop, self._database.pool.examiner.offload(function, *arguments))

    async def claim_writer(self, tag: str) -> None:
        with self._call:
            if self.status is TransactionStatus.ACTIVE:
                await self._hold_writer(tag)

    async def bulk_change(self, prepared: Prepared, *, is_one_statement: bool) -> SqlBulkChange:
        with self._call:
            if self._block.status is TransactionStatus.FAILED:
                raise failed_transaction()
            if prepared.counts:
                raise SqlError("0A000", "last_insert_rowid() and its kin are not available in changes for many rows of parameters")
            await self.check_rights(prepared)
            held = await self._hold_writer(prepared.tag)
            await self.check_rights(prepared)
            await self._results.drain()
            run = partial(held.transaction.run, held.writer.run_many, prepared)
            return SqlBulkChange(self._call, self._block, run, is_one_statement=is_one_statement)

    async def check_constraints(self) -> None:
        with self._call:
            if self._held is not None:
                await self._held.transaction.run(self._held.writer.query, lambda connection, _: check_references(connection), "")

    def fail(self) -> None:
        self._block.fail()

    async def set_request_id(self, request_id: str | None) -> None:
        if self._held is not None:
            raise SqlError("25001", "a request id must be set before the transaction writes")
        self._block.request_id = "" if request_id is None else own_request_id(request_id, self.roles.acting)

    async def travel(self, point: str | None) -> int | None:
        with self._call:
            self._database = await self._past.moved(self._database, self.status, point)
            self._reads = ReadAdmission(self._database, self.waits, self._reads.settings)
            self._rights = RightsCheck(self._database, self.client, self.roles)
            return self._database.as_of

    async def session_as_of(self, point: str) -> SqlSession:
        with self._call:
            database = await self._past.open(self._database, self.status, point, holds_writer=self._held is not None)
            session = SqlSession(database, self.application_name, self.client, self.roles)
            session.waits, session._call.counters = self.waits, self._call.counters
            self._past.add(session, session._past)
            return session

    def cancel(self) -> None:
        reason = SqlError("57014", "canceling statement due to user request")
        self._past.cancel(reason)
        if not self._calls:
            return
        self._stop.reason = reason
        if self._held is not None:
            self._held.transaction.interrupt(reason)
        if self._interrupted is not None:
            fail(self._interrupted, reason)
        self._reads.interrupt(reason)

    async def close(self) -> None:
        self._end_reason = self._end_reason or SqlError("08003", "the session is closed")
        await self._past.close()
        await self._end_transaction(committed=False)
        self._database.forget(self)

    def end(self, reason: SqlError) -> None:
        """End the session from our side. A statement that runs is interrupted and answered first."""
        if self._end_reason is not None:
            return
        self._end_reason = reason
        if self._held is not None:
            self._held.transaction.abandon()
        if self._interrupted is not None:
            fail(self._interrupted, reason)
        self._stop.reason = reason
        self._reads.interrupt(reason)
        self._past.end(reason)
        self._resolve_ended()

    def _resolve_ended(self) -> None:
        if self._end_reason is not None and not self._calls:
            resolve(self._ended, self._end_reason)

    # Statements.

    def _ended_by_limit(self) -> SqlError | None:
        """The limit that ended the open transaction, if its client has not met the error yet."""
        if self._held is not None:
            return self._held.transaction.expired
        return self._checkout.ended if self._checkout is not None else None

    async def _examine(self, sql: str) -> Prepared:
        if self._held is not None:
            is_short = len(sql) <= _EXAMINED_CHARACTERS
            prepared: Prepared = await self._held.transaction.run(self._held.writer.authorizer.examine, sql, is_short=is_short)
            return prepared
        if self._checkout is not None:
            examined: Prepared = self._checkout.examine_now(sql) or await self._checkout.run(self._checkout.reader.examine, sql)
            return examined
        return await self._database.pool.examiner.examine(sql, self._database.schema_version)

    async def _change(self, prepared: Prepared, values: Sequence[Value], version: int | None, check: CheckRows | None) -> RowsCursor:
        self._rights.check_command(prepared)
        if prepared.command is None:
            await self._require_rights(self.roles.acting, prepared)
        role, status = self.roles.acting, self._block.status
        try:
            if status is TransactionStatus.IDLE:
                cursor = await self._change_alone(prepared, values, version, check, role)
            else:
                cursor = await self._change_in_transaction(prepared, values, role)
        except SqlError as error:
            self._rights.refused(prepared, error)
            raise
        self._rights.changed(prepared)
        cursor.last_row_id = self._call.counters.changed(prepared, cursor.rows_affected, cursor.last_row_id)
        return cursor

    async def _change_alone(
        self, prepared: Prepared, values: Sequence[Value], schema_version: int | None, check: CheckRows | None, role: str | None
    ) -> RowsCursor:
        leadership = required_leadership(self._database, prepared.tag)
        request_id, self._block.request_id = self._block.request_id, ""
        access = None if prepared.command is not None else self._database.roles.access
        request = AutocommitRequest(prepared, tuple(values), request_id, self._stop, schema_version, check, role, access, self.waits)
        try:
            outcome: StatementOutcome = await leadership.submit(request)
        except SchemaMoved:
            self._block.request_id = request_id  # It names the statement that runs in its place.
            raise
        return RowsCursor(prepared.columns, outcome.rows, outcome.rows_affected, outcome.last_row_id)

    async def _change_in_transaction(self, prepared: Prepared, parameters: Sequence[Value], role: str | None) -> RowsCursor:
        held = await self._hold_writer(prepared.tag)
        if prepared.command is None:
            await self._require_rights(role, prepared)  # Another session may have taken them while this one waited for the writer.
        if self._block.is_repeat:
            again = self._block.next_repeated()
            return RowsCursor(prepared.columns, again.rows, again.rows_affected)
        await self._results.drain()
        is_short = held.transaction.is_short(prepared, parameters)
        outcome = await held.transaction.run(held.writer.run, prepared, tuple(parameters), role, is_short=is_short)
        rows = tuple(outcome.rows) if self._block.request_id else ()
        self._block.record(StatementResult(outcome.rows_affected, rows), altered=prepared.kind is StatementKind.SCHEMA)
        return RowsCursor(prepared.columns, outcome.rows, outcome.rows_affected, outcome.last_row_id)

    async def _hold_writer(self, tag: str) -> HeldWriter:
        """The writer, claimed by the first statement of the transaction that needs it."""
        if self._held is not None:
            return self._held
        leadership = required_leadership(self._database, tag)
        if self._checkout is not None and self._checkout.ended is not None:
            raise self._checkout.ended
        # Open results read the snapshot, which ends when the reader is returned. One that stayed open would show it to the next session.
        await self._results.drain()
        held = self._held = HeldWriter(await self._claim(leadership), leadership)
        await self._release_checkout(committed=False)
        try:
            for name in self._block.savepoints:
                await held.transaction.run(held.writer.savepoint, name)
            if self._block.request_id:
                stored: StoredResult | None = await held.transaction.run(held.writer.stored_result, self._block.request_id)
                if stored is not None:
                    self._block.repeat(stored.results)
        except BaseException:
            # ROLLBACK TO must not continue the transaction: a request that must not run again would run.
            self._block.doom()
            raise
        return held

    async def _claim(self, leadership: Leadership) -> InteractiveTransaction:
        # The number is detached before the wait: a snapshot that ends meanwhile must not abort it.
        number = self._checkout.detach_number() if self._checkout is not None else None
        self._interrupted = asyncio.get_running_loop().create_future()
        try:
            return await leadership.claim(self._snapshot, number, self._interrupted, self.waits)
        except BaseException as error:
            if self._checkout is not None:
                self._checkout.reattach_number(number, leadership.ids)
            self._block.doom(doomed=isinstance(error, SqlError) and error.sqlstate == "40001")
            raise
        finally:
            self._interrupted.cancel()
            self._interrupted = None

    async def _read_as(self, role: str | None, prepared: Prepared, parameters: Sequence[Value], version: int | None) -> Cursor:
        """Read with the rights of a role."""
        allowed = self._database.roles.allowed
        if (role, prepared.sql) not in allowed or self._block.status is not _IDLE:
            await self._require_rights(role, prepared)
            allowed = self._database.roles.allowed
        cursor = await self._read(prepared, parameters, version)
        if self._database.roles.allowed is not allowed:
            try:
                await self._require_rights(role, prepared)  # Its tables may have become others while it waited for a reader.
            except BaseException:
                await shielded(cursor.close())
                raise
        return cursor

    async def _read(self, prepared: Prepared, parameters: Sequence[Value], version: int | None) -> Cursor:
        if self._held is not None:
            return await self._read_on_writer(self._held, prepared, parameters)
        # The leadership at the time of the call: it may end before the snapshot is taken.
        database = self._database
        leadership = database.leadership
        if self._block.status is not _IDLE:
            checkout = self._checkout or await self._begin_snapshot(leadership, prepared.sql, version)
            rows = checkout.read_now(prepared, parameters, database.schema_version)
            if rows is not None:
                return RowsCursor(prepared.columns, rows)
            return await self._read_on(checkout, prepared, parameters, own=False)
        if (leadership is None or self._reads.settings is not DEFAULT_READS) and not self._reads.is_plain(leadership, prepared.sql):
            return await self._read_at_level(leadership, prepared, parameters, version)
        pool = database.pool
        rows = pool.read_now(prepared, parameters, database.schema_version)
        if rows is not None:
            await confirm(leadership, self.waits, prepared)
            return RowsCursor(prepared.columns, rows)
        cursor = await self._read_on(await pool.acquire(self.waits), prepared, parameters, own=True)
        try:
            await confirm(leadership, self.waits, prepared)
        except BaseException:
            await shielded(cursor.close())
            raise
        return cursor

    async def _read_at_level(
        self, leadership: Leadership | None, prepared: Prepared, values: Sequence[Value], version: int | None
    ) -> Cursor:
        """Read outside of a transaction at a level that this node must admit."""
        valid_until = await self._reads.admit(leadership, prepared.sql)
        check_schema(version, self._database.schema_version)
        rows = self._database.pool.read_now(prepared, values, self._database.schema_version)
        if rows is not None and await self._reads.is_confirmed(leadership, valid_until):
            return RowsCursor(prepared.columns, rows)
        checkout, _ = await self._reads.open_snapshot(leadership, prepared.sql, version)
        return await self._read_on(checkout, prepared, values, own=True)

    async def _begin_snapshot(self, leadership: Leadership | None, sql: str, version: int | None) -> ReaderCheckout:
        """Begin to read in the transaction. The snapshot stays where its schema is another than the statement's, which is planned again."""
        checkout, self._snapshot = await self._reads.open_snapshot(leadership, sql)
        self._checkout = checkout
        check_schema(version, self._reads.snapshot_schema)
        return checkout

    @fault_point("sql.read_in_thread")
    async def _read_on(self, checkout: ReaderCheckout, prepared: Prepared, parameters: Sequence[Value], *, own: bool) -> Cursor:
        """Read on a reader.

        Args:
            own: the reader is for this statement alone and is returned at its end.
        """
        stop = self._stop
        try:
            cursor, rows = await checkout.run(checkout.reader.start, prepared, tuple(parameters), stop, stop=stop)
        except BaseException:
            if own:
                await checkout.give_back(committed=False)
            raise
        if cursor is None:
            if own:
                await checkout.give_back(committed=True)
            return RowsCursor(prepared.columns, rows)

        async def more(max_rows: int) -> tuple[list[Row], bool]:
            fetched: tuple[list[Row], bool] = await checkout.run(checkout.reader.fetch, cursor, max_rows, self._stop, stop=self._stop)
            return fetched

        async def finish() -> None:
            await checkout.close_cursor(cursor)
            if own:
                await checkout.give_back(committed=True)

        return self._results.open(prepared.columns, rows, more, finish)

    async def _read_on_writer(self, held: HeldWriter, prepared: Prepared, parameters: Sequence[Value]) -> Cursor:
        transaction, writer = held.transaction, held.writer
        if transaction.is_short(prepared, parameters):
            rows = await transaction.read_short(prepared, parameters)
            await transaction.confirm()
            return RowsCursor(prepared.columns, rows)
        cursor: apsw.Cursor = await transaction.run(writer.read, prepared, tuple(parameters))
        fetch: Callable[[int], Awaitable[tuple[list[Row], bool]]] = partial(transaction.run, writer.fetch, cursor)
        rows, is_end = await fetch(FIRST_ROWS)
        await transaction.confirm()
        if is_end:
            await transaction.run(cursor.close, True)
            return RowsCursor(prepared.columns, rows)

        async def finish() -> None:
            if not transaction.over:
                await shielded(transaction.run(cursor.close, True))

        return self._results.open(prepared.columns, rows, fetch, finish)

    def set_reads(self, settings: ReadSettings) -> None:
        self._reads.settings = DEFAULT_READS if settings == DEFAULT_READS else settings

    # Rights.

    @property
    def access(self) -> AccessRights:
        return self._rights.access(self._held)

    async def check_rights(self, prepared: Prepared, *, locks: bool = False) -> None:
        with self._call:
            role = self.roles.acting
            if prepared.command is None and prepared.kind in (_READ, *_CHANGES):
                await self._require_rights(role, prepared, locks=locks)

    async def verifier_of(self, password: str) -> str:
        with self._call:
            return await self._database.pool.examiner.offload(verifier_text, password, self._database.roles.new_salt())

    async def _require_rights(self, role: str | None, prepared: Prepared, *, locks: bool = False) -> None:
        schema = self._reads.snapshot_schema if self._checkout is not None and self._held is None else None
        await self._rights.require(role, prepared, self._held, schema, locks=locks)

    # Transactions.

    async def _control(self, prepared: Prepared) -> None:
        kind = prepared.kind
        if kind in (StatementKind.BEGIN, StatementKind.BEGIN_IMMEDIATE):
            await self._begin(immediate=kind is StatementKind.BEGIN_IMMEDIATE)
        elif kind is StatementKind.COMMIT:
            await self._commit()
        elif kind is StatementKind.ROLLBACK:
            await self._end_transaction(committed=False)
        elif kind is not StatementKind.EMPTY:
            if self.status is TransactionStatus.IDLE:
                raise SqlError("25P01", f"{prepared.tag} can only be used in transaction blocks")
            await self._savepoint(kind, savepoint_name(prepared.sql))

    async def _begin(self, *, immediate: bool) -> None:
        if self._block.begin() and immediate:
            try:
                await self._hold_writer("BEGIN IMMEDIATE")
            except BaseException:
                await self._end_transaction(committed=False)  # It has not begun.
                raise

    async def _commit(self) -> None:
        if self.status is not TransactionStatus.ACTIVE:
            await self._end_transaction(committed=False)
            return
        held = self._held
        try:
            await self._results.drain()
            if held is not None and self._block.is_repeat:
                await held.transaction.rollback()
            elif held is not None:
                await held.transaction.commit(self._block.results, self._block.request_id)
        finally:
            await self._end_transaction(committed=True)

    async def _savepoint(self, kind: StatementKind, name: str) -> None:
        block, held = self._block, self._held
        block.check_savepoints()
        if kind is StatementKind.SAVEPOINT:
            if held is not None:
                await held.transaction.run(held.writer.savepoint, name)
            block.save(name)
            return
        number = block.number_of(name)
        if kind is StatementKind.RELEASE:
            if held is not None:
                await held.transaction.run(held.writer.release, name)
            block.release(name)
        else:
            await self._results.close(since=number)
            if held is not None:
                # Results that are still open began before the savepoint, and no change came after them: it would have drained them.
                undo = held.restart_savepoint if self._results.cursors else held.writer.rollback_to
                await held.transaction.run(undo, name)
            block.rollback_to(name)

    # The end of a transaction.

    async def _end_transaction(self, *, committed: bool) -> None:
        """End the open transaction, even if the caller is cancelled. It is rolled back unless it was committed."""
        is_released = not self._results.cursors and (self._held is None or self._held.transaction.over)
        if is_released and (self._checkout is None or self._checkout.release_now(committed=committed)):
            self._held = self._checkout = self._snapshot = None
            self._block.end()
        else:
            await shielded(self._release(committed=committed))

    async def _release(self, *, committed: bool) -> None:
        held, self._held = self._held, None
        if held is not None and not held.transaction.over:
            with suppress(SqlError):  # The leadership ended, and the transaction with it.
                await held.transaction.rollback()
        await self._results.close()
        await self._release_checkout(committed=committed)
        self._block.end()

    async def _release_checkout(self, *, committed: bool) -> None:
        checkout, self._checkout, self._snapshot = self._checkout, None, None
        if checkout is not None:
            await checkout.release(committed=committed)
