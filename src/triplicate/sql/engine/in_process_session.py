"""A session of the process that holds the database: statements in SQLite's dialect, with Python values.

An error undoes its statement alone, and the open transaction goes on, as SQLite's users expect. PostgreSQL's clients have sessions of
their own, whose transactions fail with a statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from triplicate.errors import SqlError
from triplicate.sql.catalogue.live_tables import rows_parameter
from triplicate.sql.core.audit import IN_PROCESS
from triplicate.sql.core.interface import Column, Cursor, Prepared, Row, SchemaMoved, StatementKind, TransactionStatus
from triplicate.sql.core.lexer import SqlDialect, split_statements
from triplicate.sql.core.live_rows import LiveRequest
from triplicate.sql.core.parameter_binding import Parameters, bound, check_text
from triplicate.sql.core.schema_cache import SchemaCache
from triplicate.sql.core.transaction_block import failed_transaction
from triplicate.sql.engine.in_process_counts import CountedStatement, InProcessCounts
from triplicate.sql.engine.live_parameters import live_query
from triplicate.sql.engine.session import SqlSession
from triplicate.sql.engine.sql_database import SqlDatabase

ATTEMPTS = 10
"""Attempts of a statement whose schema others change while it waits."""
CACHED_STATEMENTS = 500
CACHED_CHARACTERS = 4000
"""Limits of the cache of prepared statements: their number, and the length of each."""
FETCHED_ROWS = 1000


class PreparedCache:
    """The prepared statements of one database, for all sessions of the process."""

    def __init__(self) -> None:
        self._generation = -1
        self._statements = SchemaCache[Prepared](CACHED_STATEMENTS, CACHED_CHARACTERS)

    def of(self, database: SqlDatabase) -> SchemaCache[Prepared]:
        """The statements for the present copy of the database."""
        if database.generation != self._generation:
            self._generation = database.generation
            self._statements = SchemaCache(CACHED_STATEMENTS, CACHED_CHARACTERS)
        return self._statements


@dataclass(slots=True)
class StartedStatement:
    """A statement that has begun, and its result."""

    kind: StatementKind
    tag: str
    """First words of the statement, such as ``INSERT`` or ``CREATE TABLE``."""
    columns: tuple[Column, ...]
    rows_changed: int
    """The number of rows that were inserted, updated or deleted; -1 if it is no such statement."""
    last_row_id: int | None
    """The rowid of the row that it has inserted last; None if it has inserted none."""
    _cursor: Cursor = field(repr=False)
    _count: CountedStatement = field(repr=False)

    async def fetch(self, max_rows: int) -> list[Row]:
        """The next rows, at most `max_rows`. Fewer rows mean the end."""
        count = self._count
        if count.is_paused:
            count.go_on()
        try:
            rows = await self._cursor.fetch(max_rows)
        except BaseException:
            count.end(failed=True)
            raise
        if not count.is_over:
            count.rows += len(rows)
            if len(rows) < max_rows:
                count.end()
            else:
                count.pause()
        return rows

    async def fetch_all(self) -> list[Row]:
        """All rows that were not fetched yet."""
        rows = await self.fetch(FETCHED_ROWS)
        further = rows
        while len(further) == FETCHED_ROWS:
            further = await self.fetch(FETCHED_ROWS)
            rows += further
        return rows

    async def close(self) -> None:
        """End the statement. Idempotent."""
        if not self._count.is_over:
            self._count.end()
        await self._cursor.close()


class InProcessSession:
    """See the module's text. Used by one caller at a time.

    Args:
        statements: shared by the sessions of a database.
    """

    def __init__(self, database: SqlDatabase, session: SqlSession, statements: PreparedCache) -> None:
        self._database = database
        self._session = session
        self._statements = statements
        self._counts = InProcessCounts(database, session)

    @classmethod
    async def open(cls, database: SqlDatabase, statements: PreparedCache, application_name: str = "") -> InProcessSession:
        """Raises SqlError: 57P03 or 58000, the copy cannot be used."""
        return cls(database, await database.session(application_name, IN_PROCESS), statements)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, be it failed."""
        return self._session.status is not TransactionStatus.IDLE

    @property
    def is_ended(self) -> bool:
        """Whether the node has ended the session, as after a loss of the lead."""
        return self._session.ended.done()

    def is_of(self, database: SqlDatabase) -> bool:
        """Whether it is a session of this object. A copy that failed is replaced by another object."""
        return self._database is database

    async def start(self, sql: str, parameters: Parameters = ()) -> StartedStatement:
        """Run one statement, also of transaction control. A change outside of a transaction is acknowledged by the log on return.

        Raises:
            SqlError: it failed, and nothing of it is stored. An open transaction goes on, unless it has ended with the statement:
                then each further statement fails until ROLLBACK. 08007: the outcome of a commit is unknown.
        """
        try:
            return await self._start(sql, parameters)
        except SqlError:
            self._session.go_on()
            raise

    async def _start(self, sql: str, parameters: Parameters) -> StartedStatement:
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._start_once(sql, parameters)
            except SchemaMoved:
                continue
        return await self._start_once(sql, parameters)

    async def _start_once(self, sql: str, parameters: Parameters) -> StartedStatement:
        session = self._session
        prepared, version = await self._prepare(sql)
        if prepared.kind is StatementKind.COMMIT and session.status is TransactionStatus.FAILED:
            await session.start(prepared, ())
            raise failed_transaction()  # SQLite's users take a COMMIT without an error for a commit.
        values = bound(prepared.parameters, parameters)
        count = self._counts.begin(sql)
        try:
            live = live_query(sql, len(values)) if prepared.kind is StatementKind.READ and not prepared.is_measured else None
            if live is not None:
                prepared, version = await self._prepare(live.sql)
                values = (*values, *[await self._live_rows(table) for table in live.tables])
            cursor = await session.start(prepared, values, version)
        except SchemaMoved:
            raise  # It is run again.
        except BaseException:
            count.end(failed=True)
            raise
        if not prepared.columns:
            count.rows = cursor.rows_affected
            count.end()
        is_change = prepared.kind is StatementKind.WRITE
        inserts = is_change and prepared.tag == "INSERT" and cursor.rows_affected > 0
        last_row_id = getattr(cursor, "last_row_id", None) if inserts else None
        return StartedStatement(
            prepared.kind, prepared.tag, prepared.columns, cursor.rows_affected if is_change else -1, last_row_id, cursor, count
        )

    async def _prepare(self, sql: str) -> tuple[Prepared, tuple[int, int]]:
        """The statement, and a version of the schema that was there when it was prepared."""
        check_text(sql)
        session = self._session
        version = session.schema_version
        if not session.sees_shared_schema:
            return await session.prepare(sql), version
        known = self._statements.of(self._database)
        prepared = known.find(sql, version[0])
        if prepared is not None:
            session.check_prepared(prepared)
            return prepared, version
        prepared = await session.prepare(sql)
        if prepared.kind is not StatementKind.SCHEMA:
            known.remember(sql, prepared, version[0])
        return prepared, version

    async def _live_rows(self, table: str) -> str:
        """The parameter with the rows of a live table, as they are now, by the rights of the current role."""
        session, activity = self._session, self._database.activity
        rows = await activity.live_source(table)(LiveRequest((), session.roles.acting, session.access))
        return await rows_parameter(rows, session.offload)

    async def kind_of(self, sql: str) -> StatementKind:
        """The kind of a statement, which is not run. Raises SqlError: it is wrong."""
        try:
            return (await self._prepare(sql))[0].kind
        except SqlError:
            self._session.go_on()
            raise

    async def execute(self, sql: str, parameters: Parameters = ()) -> tuple[StartedStatement, list[Row]]:
        """Run one statement and fetch all rows. Raises as `start`."""
        started = await self.start(sql, parameters)
        try:
            return started, await started.fetch_all()
        except SqlError:
            self._session.go_on()
            raise
        finally:
            await started.close()

    async def execute_many(self, sql: str, rows: Iterable[Parameters]) -> int:
        """Run one change for each row of parameters, in the open transaction or in one of its own; the number of rows changed.

        Raises:
            SqlError: a run has failed, and nothing of the call is stored. 42601: the statement is no change, or returns rows. An error
                that `rows` raises comes out as it is; nothing is stored then either.
        """
        errors: list[Exception] = []
        try:
            return await self._execute_many(sql, _supplied(rows, errors))
        except SqlError:
            if errors:
                raise errors[0] from None
            raise

    async def _execute_many(self, sql: str, rows: Iterable[Parameters]) -> int:
        if self.in_transaction:
            try:
                return await self._run_many(sql, rows)
            except SqlError:
                self._session.go_on()
                raise
        await self.start("BEGIN")
        try:
            changed = await self._run_many(sql, rows)
            await self.start("COMMIT")
        finally:
            if self.in_transaction:
                await self.start("ROLLBACK")
        return changed

    async def _run_many(self, sql: str, rows: Iterable[Parameters]) -> int:
        session = self._session
        check_text(sql)
        count = self._counts.begin(sql)
        try:
            await session.claim_writer("INSERT")
            prepared, _ = await self._prepare(sql)
            if prepared.kind is not StatementKind.WRITE or prepared.columns:
                raise SqlError("42601", "only INSERT, UPDATE and DELETE without RETURNING run for many rows of parameters")
            change = await session.bulk_change(prepared, is_one_statement=False)
            await change.run(bound(prepared.parameters, row) for row in rows)
            count.rows = change.finish()
        except BaseException:
            count.end(failed=True)
            raise
        count.end(calls=max(1, len(change.counts)))
        return count.rows

    async def execute_script(self, sql: str) -> None:
        """Run the statements of a text, one after the other, each in the open transaction or in one of its own.

        Raises:
            SqlError: a statement failed. Those before it stay.
        """
        check_text(sql)
        for statement in split_statements(sql, SqlDialect.SQLITE):
            await (await self.start(statement.sql)).close()

    async def roll_back(self) -> None:
        """Undo the open transaction. No effect without one."""
        if self.in_transaction:
            await self.start("ROLLBACK")

    def interrupt(self) -> None:
        """Interrupt the running statement, which fails with 57014. May be called at any time, on the loop."""
        self._session.cancel()

    async def close(self) -> None:
        """Roll back the open transaction and end the session. Idempotent."""
        self._counts.close()
        await self._session.close()


def _supplied(rows: Iterable[Parameters], errors: list[Exception]) -> Iterator[Parameters]:
    """A caller's rows. Their own error becomes one of SQL, which undoes the statement, and is added to `errors`."""
    try:
        yield from rows
    except Exception as error:
        errors.append(error)
        raise SqlError("22023", f"the rows of parameters ended with {error!r}") from error
