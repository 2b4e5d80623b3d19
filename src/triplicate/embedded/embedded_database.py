"""A database in the process of an application: its statements, transactions and results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from triplicate.embedded.embedded_node import LOCAL_LEASE_S, EmbeddedNode
from triplicate.embedded.usable_copy import wait_until_usable
from triplicate.errors import HandleClosed, SqlError
from triplicate.runtime import shielded
from triplicate.sql import (
    LEASE_S,
    InProcessSession,
    Parameters,
    PreparedCache,
    Row,
    SqlDatabase,
    StartedStatement,
    connection_string,
    create_database,
    database_names,
    wait_for_leader,
)

IDLE_SESSIONS_MAX = 64
"""Sessions that are kept for the next statement. Further ones are closed after their statement."""
STREAMED_ROWS = 1000


@dataclass(frozen=True, slots=True)
class QueryResult(Sequence[Row]):
    """The rows of a statement, and its effect."""

    columns: tuple[str, ...]
    rows: list[Row]
    rows_changed: int
    """The number of rows that were inserted, updated or deleted; -1 if it is no such statement."""
    last_row_id: int | None
    """The rowid of the row that was inserted last; None if none was."""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:  # type: ignore[override]
        return self.rows[index]

    @property
    def value(self) -> object:
        """The first column of the first row; None without rows."""
        return self.rows[0][0] if self.rows else None


class OpenTransaction:
    """An open transaction; see `EmbeddedDatabase.transaction`. Used by one task at a time."""

    def __init__(self, session: InProcessSession) -> None:
        self._session = session

    async def execute(self, sql: str, parameters: Parameters = ()) -> QueryResult:
        """Run one statement and fetch its rows.

        Raises:
            SqlError: it failed and is undone, and the transaction goes on without it.
        """
        return _result(*await self._session.execute(sql, parameters))

    async def execute_many(self, sql: str, rows: Iterable[Parameters]) -> int:
        """Run one change for each row of parameters; the number of rows changed.

        Raises:
            SqlError: a run failed, and nothing of the call stays.
        """
        return await self._session.execute_many(sql, rows)


class EmbeddedDatabase:
    """One database of an embedded node. Made by `triplicate.database`. Tasks may use it at the same time.

    Statements are in SQLite's dialect, with its forms of parameters. PostgreSQL's clients use the same tables in their own dialect.
    """

    def __init__(self, name: str, node: EmbeddedNode) -> None:
        self.name = name
        self._node = node
        self._statements = PreparedCache()
        self._idle: list[InProcessSession] = []
        self._is_closed = False

    @classmethod
    async def open(cls, node: EmbeddedNode, name: str, *, create: bool, limit_s: float) -> EmbeddedDatabase:
        """Wait until the database can be used here: this node leads it, or follows and has what the log had when this was called.

        Args:
            create: make it if there is none of the name.
            limit_s: limit of the wait, seconds.

        Raises:
            SqlError: 3D000, there is no such database. EnvironmentFault: it cannot be used within the time, and why.
        """
        names = await database_names(node.client)
        if name not in names:
            if not create:
                known = ", ".join(names) or "none"
                hint = f"The databases there are: {known}. Give name=… of one, or create=True to make it."
                raise SqlError("3D000", f'database "{name}" does not exist', hint=hint)
            log_settings, lease_s = (None, LEASE_S) if node.cluster is None else (node.cluster.log_settings, LOCAL_LEASE_S)
            await create_database(node.client, name, log_settings, logs=node.logs, lease_s=lease_s)
        database = cls(name, node)
        await wait_until_usable(node, node.node.databases, name, database._title, limit_s)
        return database

    # State.

    @property
    def is_leader(self) -> bool:
        """Whether this process leads the database now, so that it accepts changes."""
        return self._database.is_leader

    @property
    def position(self) -> int:
        """The offset after the last record of the database's log that the copy of this process has."""
        return self._database.position

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port at which PostgreSQL's clients reach this process; None where it does not listen."""
        return self._node.address

    @property
    def node(self) -> EmbeddedNode:
        """The node, for logs and other databases of its cluster."""
        return self._node

    @property
    def _database(self) -> SqlDatabase:
        if self._is_closed:
            raise HandleClosed(f"database {self.name} was closed; open it again")
        self._node.check_works(self._title)
        database = self._node.node.databases.get(self.name)
        if database is None:
            raise SqlError("3D000", f'database "{self.name}" does not exist any more')
        return database

    @property
    def _title(self) -> str:
        return f"database {self.name}"

    async def dsn(self, *, user: str = "", any_node: bool = False, limit_s: float = 10.0) -> str:
        """The connection string for PostgreSQL's clients, with all nodes that serve the database; see `connection_string`.

        Args:
            user: the role; empty leaves it out.
            any_node: connect to any node, also to a read-only one.
            limit_s: a node that has just begun to listen is waited for at most this time, in seconds.

        Raises:
            EnvironmentFault: no node listens, or none has a usable copy.
        """
        info = await wait_for_leader(self._node.client, self.name, limit_s)
        return connection_string(info, user=user, any_node=any_node, ca_file=self._node.ca_file)

    # Statements.

    async def execute(self, sql: str, parameters: Parameters = ()) -> QueryResult:
        """Run one statement, a transaction of its own, and fetch its rows. A change is acknowledged by the log on return.

        Args:
            parameters: values by place for ``?``, or by name for ``:name``.

        Raises:
            SqlError: it failed, and nothing of it is stored; 08007, the outcome is unknown; 25006, another node leads, which the hint
                names.
        """
        async with self._session() as session:
            if (await session.kind_of(sql)).name.startswith(("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")):
                raise SqlError("25001", "transactions are begun and ended by the block of `database.transaction()`")
            return _result(*await session.execute(sql, parameters))

    async def execute_many(self, sql: str, rows: Iterable[Parameters]) -> int:
        """Run one change for each row of parameters, all in one transaction; the number of rows changed. Raises as `execute`."""
        async with self._session() as session:
            return await session.execute_many(sql, rows)

    async def execute_script(self, sql: str) -> None:
        """Run the statements of a text one after the other. A transaction that it leaves open is rolled back.

        Raises:
            SqlError: a statement failed. Those before it stay, unless they are of a transaction that the text has begun.
        """
        async with self._session() as session:
            try:
                await session.execute_script(sql)
            finally:
                await shielded(session.roll_back())

    async def stream(self, sql: str, parameters: Parameters = ()) -> AsyncIterator[Row]:
        """The rows of a statement, fetched as they are used. Close the iterator to end it early. Raises as `execute`."""
        async with self._session() as session:
            started = await session.start(sql, parameters)
            try:
                while rows := await started.fetch(STREAMED_ROWS):
                    for row in rows:
                        yield row
                    if len(rows) < STREAMED_ROWS:
                        break
            finally:
                await shielded(started.close())

    @asynccontextmanager
    async def transaction(self, *, immediate: bool = False) -> AsyncIterator[OpenTransaction]:
        """``async with database.transaction() as transaction:`` commits at the end of the block, and rolls back after an error.

        Args:
            immediate: wait for other writers now, and not with the first change. Such a transaction meets no 40001.

        Raises:
            SqlError: at the end of the block: it was not committed; 08007, the outcome is unknown. 40001: others have changed the
                database since it began to read, and it may be run again.
        """
        async with self._session() as session:
            await session.execute("BEGIN IMMEDIATE" if immediate else "BEGIN")
            try:
                yield OpenTransaction(session)
                await session.execute("COMMIT")
            finally:
                await shielded(session.roll_back())

    async def new_session(self, application_name: str = "") -> InProcessSession:
        """A session for one caller, which closes it. For drivers with transactions of their own, such as `triplicate.dbapi`."""
        return await InProcessSession.open(self._database, self._statements, application_name)

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[InProcessSession]:
        database = self._database
        session = self._idle.pop() if self._idle else None
        while session is not None and session.is_ended:
            session = self._idle.pop() if self._idle else None
        if session is None or not session.is_of(database):
            session = await self.new_session("triplicate.database")
        try:
            yield session
        finally:
            if session.in_transaction or session.is_ended or self._is_closed or len(self._idle) >= IDLE_SESSIONS_MAX:
                await shielded(session.close())
            else:
                self._idle.append(session)

    # The end.

    async def aclose(self) -> None:
        """End its sessions and stop the node, with its cluster where that is in this process. Idempotent."""
        self._is_closed = True
        await self._node.aclose()


def _result(started: StartedStatement, rows: list[Row]) -> QueryResult:
    return QueryResult(tuple(column.name for column in started.columns), rows, started.rows_changed, started.last_row_id)
