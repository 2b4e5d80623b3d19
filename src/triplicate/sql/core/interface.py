"""The boundary between the servers of clients (the PostgreSQL server, the in-process API) and the engine that runs SQL.

A `Database` is one replicated database as this node sees it; a `Session` is one client's conversation with it. The engine knows
SQLite, transactions, replication and SQLSTATEs; it has no part in PostgreSQL's messages, types or settings. Every method raises
`SqlError` for errors of the client. One session is used by one caller at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar

from triplicate.errors import SqlError
from triplicate.sql.core.access_rights import AccessRights
from triplicate.sql.core.audit import IN_PROCESS, ConnectedClient
from triplicate.sql.core.column_codec import Value as Value
from triplicate.sql.core.database_activity import DatabaseActivity
from triplicate.sql.core.notifications import Notification
from triplicate.sql.core.read_levels import ReadSettings
from triplicate.sql.core.role_commands import RoleCommand
from triplicate.sql.core.role_login import RoleLogin
from triplicate.sql.core.session_roles import SessionRoles
from triplicate.sql.core.statement_waits import StatementWaits
from triplicate.sql.core.transaction_block import TransactionStatus as TransactionStatus

Row = tuple[Value, ...]
Result = TypeVar("Result")
CheckRows = Callable[[Sequence[Row]], None]
"""Called with the rows of a change before it is stored, on any thread. A SqlError that it raises undoes the change and is its answer."""


class SchemaMoved(SqlError):
    """A change was prepared for another schema than it met when it got the writer. It has not run and may be prepared again."""

    def __init__(self) -> None:
        super().__init__("40001", "the schema was changed while the statement waited", hint="Run it again.")


class StatementKind(Enum):
    READ = "read"
    WRITE = "write"
    SCHEMA = "schema"
    BEGIN = "begin"
    BEGIN_IMMEDIATE = "begin immediate"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    RELEASE = "release"
    ROLLBACK_TO = "rollback to"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a result."""

    name: str
    declared_type: str | None
    """The declared type of the table column it comes from, else None (an expression)."""
    table: str | None = None
    origin: str | None = None
    """The table column's own name."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """One statement, checked by the authorizer and by SQLite, but not started."""

    sql: str
    kind: StatementKind
    columns: tuple[Column, ...]
    parameters: tuple[str | None, ...]
    """Names of the parameters by index, as SQLite sees them: ``$1`` for PostgreSQL's style, None for a bare ``?``."""
    tag: str
    """First words for PostgreSQL's command tag: ``INSERT``, ``UPDATE``, ``DELETE``, ``SELECT``, ``CREATE TABLE``, ``BEGIN`` …"""
    is_measured: bool = False
    """Whether SQLite's steps measure its time: it only reads, and uses neither virtual tables nor long or impure functions."""
    asks_position: bool = False
    """Whether it calls `triplicate_position()`, whose result is a token for sessions on followers."""
    command: RoleCommand | Notification | None = None
    """The change of roles and rights, or the notification, that it is. `sql` is empty then, so that no secret is in it."""
    counts: bool = False
    """Whether it calls `last_insert_rowid()` or its kin, see `SessionCounters`."""
    last_row_id: int = 0
    """Where `last_insert_rowid()` begins in it."""
    is_constant: bool = False
    """Whether it reads views, but no table. SQLite would run its program again after the views have changed."""


class Cursor(Protocol):
    """A started statement. A write outside a transaction has been committed and acknowledged by the log when `start` returns."""

    @property
    def columns(self) -> tuple[Column, ...]: ...

    @property
    def rows_affected(self) -> int:
        """Rows inserted, updated or deleted by the statement (0 for others)."""

    async def fetch(self, max_rows: int) -> list[Row]:
        """The next rows, at most `max_rows`. Fewer rows mean the end."""

    async def fetch_batch(self, max_rows: int) -> list[Row]:
        """The next rows, at most `max_rows`, and fewer where they are long. None mean the end."""

    @property
    def is_at_end(self) -> bool:
        """Whether all rows were fetched. The statement is closed then."""

    async def close(self) -> None:
        """Close the statement. Idempotent."""


class SpecialColumns(NamedTuple):
    """Columns of a table by their names in order: those of the primary key, and the generated ones."""

    key: list[str]
    generated: list[str]


class BulkChange(Protocol):
    """One change that runs for many rows of parameters in the open transaction; see `Session.bulk_change`."""

    @property
    def counts(self) -> Sequence[int]:
        """The number of rows changed by each run of the last call; as many as there were runs without an error."""

    async def run(self, rows: Iterable[Sequence[Value]]) -> None:
        """Run the change once for each row of parameters.

        Args:
            rows: the parameters of each run. They are iterated on a thread, one row after the run of the row before it; a SqlError that
                is raised there ends the call as an error of the statement does.

        Raises:
            SqlError: a run has failed. Nothing of this call is stored, and the transaction has failed.
        """

    def finish(self) -> int:
        """All rows were given: record them as the result of one statement, if they are one. Returns the number of rows changed by all
        calls.
        """


class SessionEnd(Protocol):
    """A future of the error with which the node ends a session."""

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None: ...

    def remove_done_callback(self, callback: Callable[[Any], object], /) -> int: ...


class Session(Protocol):
    @property
    def status(self) -> TransactionStatus: ...

    @property
    def writer_use(self) -> str:
        """``holds`` or ``waits``, where the open transaction has the database's writer or waits for it; else empty."""

    @property
    def waits(self) -> StatementWaits:
        """The waits of the statement that runs, or ran last."""

    @property
    def ended(self) -> SessionEnd:
        """Done when this node ends the session, with the error for the client: 57P01 when the leadership is lost."""

    @property
    def schema_version(self) -> tuple[int, int]:
        """The version of the schema that the session's next statement meets. Equal versions stand for equal schemas."""

    def innermost_savepoint(self) -> int:
        """The number of the innermost open savepoint; 0 for none. Later ones have higher numbers.

        After ROLLBACK TO it is the savepoint's own: what began with this number, or with a higher one, is undone.
        """

    @property
    def sees_shared_schema(self) -> bool:
        """Whether the next statement meets the database's schema as it is now for all sessions, at the first number of `schema_version`.

        False in a transaction that reads a snapshot or has altered the schema, and in a failed one.
        """

    @property
    def roles(self) -> SessionRoles:
        """The roles of the session. Statements run with the rights of the current one."""

    @property
    def access(self) -> AccessRights:
        """The roles and rights of the database, as the session's next statement meets them."""

    def set_reads(self, settings: ReadSettings) -> None:
        """Set the level of later reads. A transaction that has read goes on with its snapshot."""

    async def check_rights(self, prepared: Prepared, *, locks: bool = False) -> None:
        """Check the rights of the current role, as `start` and `bulk_change` do. For callers that prepare something before.

        Args:
            locks: whether the statement locks the rows that it reads, which needs a further right.

        Raises:
            SqlError: 42501, the role has no right to run this statement.
        """

    async def verifier_of(self, password: str) -> str:
        """The verifier that is stored in the place of a password, or the given one if it is a verifier.

        Raises:
            SqlError: 22023, it is too long, or is no verifier; 0A000, it is a verifier of a kind that is not supported.
        """

    def check_prepared(self, prepared: Prepared) -> None:
        """Raise what `prepare` would raise now for a statement that it has prepared before for the same schema.

        Raises:
            SqlError: 25006, this node follows; 57P01, the session was ended; ….
        """

    async def prepare(self, sql: str) -> Prepared:
        """Check one statement (no trailing text). Raises SqlError: 42601, 42P01, 25006, 25P02 in a failed transaction, …"""

    async def start(
        self,
        prepared: Prepared,
        parameters: Sequence[Value],
        schema_version: tuple[int, int] | None = None,
        check_rows: CheckRows | None = None,
    ) -> Cursor:
        """Run it. `parameters` by index (0-based for the first). Also runs transaction control.

        Args:
            schema_version: the version for which the statement was prepared. A change that waits for the writer runs in no other.
            check_rows: of a change outside of a transaction, see `CheckRows`.

        Raises:
            SchemaMoved: it has not run, because the schema has changed.
            SqlError: it failed; inside a transaction the status is FAILED then. 08007 when the outcome is unknown, with the transaction's
                id in `detail`.
        """

    async def table_columns(self, table: str) -> list[tuple[str, str]] | None:
        """(name, declared type) of the columns of a table or view in order, or None when there is neither. See `view_columns`."""

    async def set_request_id(self, request_id: str | None) -> None:
        """Name the next transaction by the client's own id; a repeat of an id returns the stored result instead of running again."""

    async def travel(self, point: str | None) -> int | None:
        """Read the database as it was at a point from here on, or as it is for None. Nothing can be changed in the past.

        Args:
            point: ``position N``, ``time T`` or ``transaction ID``.

        Returns:
            The position of the point; None for the present.

        Raises:
            SqlError: 22023, it names no point; 55000, it is not kept; 25001, a transaction is open; 53400, 55P03, 58030, see
                `PastDatabases.open`. The session reads what it has read before then.
        """

    async def session_as_of(self, point: str) -> Session:
        """A further session with the same roles, which reads the database as it was at a point. The caller closes it.

        It ends with this one, and `cancel` of this one interrupts it.

        Raises:
            SqlError: 25001, the open transaction has written; 25P02, it has failed; and as `travel`.
        """

    async def special_columns(self, table: str) -> SpecialColumns:
        """The special columns of a table, none where there is no table. As `table_columns` it begins no snapshot."""

    async def offload(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function on a thread, so that it delays neither other sessions nor the event loop. Raises what the function raises."""

    async def claim_writer(self, tag: str) -> None:
        """In a transaction, hold the writer from here on, as a change does. No other session changes anything until the transaction ends.

        Raises:
            SqlError: 25006 on a node that follows, 40001 when the database has changed since the snapshot, 55P03 when the writer is not
                free in time.
        """

    async def bulk_change(self, prepared: Prepared, *, is_one_statement: bool) -> BulkChange:
        """Begin a change that runs for many rows of parameters. The open transaction holds the writer from here on.

        Args:
            prepared: without columns of a result, for the present schema of a session that has claimed the writer.
            is_one_statement: whether all runs are one statement of the client, or each is a statement of its own.

        Raises:
            SqlError: as `claim_writer`; 25P02 in a failed transaction.
        """

    async def check_constraints(self) -> None:
        """Check deferred foreign keys now. Raises SqlError 23503 when a change of the transaction violates one."""

    def fail(self) -> None:
        """Fail the open transaction because of an error outside of the engine, such as one in a parameter."""

    def cancel(self) -> None:
        """Interrupt the running statement, which fails with 57014. May be called at any time."""

    async def close(self) -> None:
        """Roll back the open transaction and end the session. Idempotent."""


class Database(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def is_leader(self) -> bool:
        """True when this node may write and serve linearizable reads now."""

    @property
    def leader_hint(self) -> str | None:
        """``host:port`` of the leader's PostgreSQL server where known."""

    @property
    def position(self) -> int:
        """The offset after the last log record applied here."""

    @property
    def activity(self) -> DatabaseActivity:
        """Its listeners, sessions and statements on this node."""

    @property
    def generation(self) -> int:
        """Grows when another file replaces this copy: an equal version of the schema may be another schema then."""

    async def session(self, application_name: str = "", client: ConnectedClient = IN_PROCESS) -> Session:
        """Open a session of a client. Raises SqlError 57P03 while the database is starting, 58000 when this copy is diverged."""

    async def role_login(self, name: str) -> RoleLogin | None:
        """The facts of a role that its login needs; None if this database has no such role. Raises SqlError as `session`."""


class Databases(Protocol):
    """The databases of a node, as its server uses them."""

    @property
    def starting(self) -> bool:
        """Whether the node may not know all databases yet."""

    @property
    def is_partial(self) -> bool:
        """Whether other nodes have databases of which this one has no copy."""

    def get(self, name: str) -> Database | None: ...

    def names(self) -> list[str]: ...
