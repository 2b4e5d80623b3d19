"""Connections of PEP 249 to databases in this process, with the habits of `sqlite3` of Python 3.12."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, ClassVar, Self

from triplicate.dbapi import pep249_errors as errors
from triplicate.dbapi.connection_calls import LEGACY_TRANSACTION_CONTROL, ConnectionCalls, checked_autocommit, checked_level
from triplicate.dbapi.cursor import DatabaseCursor
from triplicate.dbapi.cursor_types import Parameters
from triplicate.dbapi.pep249_errors import ProgrammingError, of_database
from triplicate.dbapi.shared_databases import SharedDatabase, acquire, release
from triplicate.embedded import DEFAULT_NAME
from triplicate.errors import TriplicateError


class Connection:
    """One session with a database. Made by `connect`.

    Args:
        shared: the database; released when the connection is closed.
    """

    Warning: ClassVar = errors.Warning
    Error: ClassVar = errors.Error
    InterfaceError: ClassVar = errors.InterfaceError
    DatabaseError: ClassVar = errors.DatabaseError
    DataError: ClassVar = errors.DataError
    OperationalError: ClassVar = errors.OperationalError
    IntegrityError: ClassVar = errors.IntegrityError
    InternalError: ClassVar = errors.InternalError
    ProgrammingError: ClassVar = errors.ProgrammingError
    NotSupportedError: ClassVar = errors.NotSupportedError

    def __init__(
        self,
        shared: SharedDatabase,
        *,
        isolation_level: str | None = "",
        autocommit: bool | int = LEGACY_TRANSACTION_CONTROL,
        check_same_thread: bool = True,
        detect_types: int = 0,
    ) -> None:
        self.row_factory: Callable[..., Any] | None = None
        self.text_factory: Callable[[bytes], Any] = str
        self.detect_types = detect_types
        self.calls = ConnectionCalls(shared, isolation_level, autocommit, checks_thread=check_same_thread)
        """The session, for cursors."""

    # Transactions.

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.calls.in_transaction

    @property
    def total_changes(self) -> int:
        """Rows that statements of this connection have inserted, updated or deleted."""
        return self.calls.total_changes

    @property
    def isolation_level(self) -> str | None:
        """How a change begins a transaction if none is open: ``""`` and ``DEFERRED``, ``IMMEDIATE``, ``EXCLUSIVE``; None: not at all.

        It applies while `autocommit` is `LEGACY_TRANSACTION_CONTROL`. None commits the open transaction.
        """
        return self.calls.isolation_level

    @isolation_level.setter
    def isolation_level(self, level: str | None) -> None:
        self.calls.check()
        self.calls.isolation_level = checked_level(level)
        if level is None and self.calls.is_legacy:
            self.calls.commit()

    @property
    def autocommit(self) -> bool | int:
        """False: a transaction is always open, as PEP 249 says. True: each change is a transaction, unless BEGIN has begun one.

        `LEGACY_TRANSACTION_CONTROL`: see `isolation_level`. True commits the open transaction, False begins one.
        """
        return self.calls.autocommit

    @autocommit.setter
    def autocommit(self, value: bool | int) -> None:
        self.calls.check()
        self.calls.autocommit = checked_autocommit(value)
        if value is True:
            self.calls.commit()
        elif value is False:
            self.calls.begin()

    def commit(self) -> None:
        """Commit the open transaction. It is acknowledged by the log on return. No effect without one, and with `autocommit` True.

        Raises:
            OperationalError: it was not committed; with sqlstate 08007, the outcome is unknown.
        """
        self._end(self.calls.commit)

    def rollback(self) -> None:
        """Undo the open transaction. No effect without one, and with `autocommit` True."""
        self._end(self.calls.roll_back)

    def _end(self, ending: Callable[[], None]) -> None:
        self.calls.check()
        if self.autocommit is True:
            return
        try:
            ending()
        finally:
            if self.autocommit is False:
                self.calls.begin()

    def __enter__(self) -> Self:
        """The block's transaction is committed at its end, or rolled back after an error. The connection stays open."""
        self.calls.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.rollback()
            return
        try:
            self.commit()
        except BaseException:
            self.rollback()
            raise

    # Statements.

    def cursor(self, factory: Callable[[Connection], DatabaseCursor] = DatabaseCursor) -> DatabaseCursor:
        """A new cursor."""
        self.calls.check()
        return factory(self)

    def execute(self, sql: str, parameters: Parameters = (), /) -> DatabaseCursor:
        """Run a statement on a new cursor. See `DatabaseCursor.execute`."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> DatabaseCursor:
        """See `DatabaseCursor.executemany`."""
        return self.cursor().executemany(sql, parameters)

    def executescript(self, script: str, /) -> DatabaseCursor:
        """See `DatabaseCursor.executescript`."""
        return self.cursor().executescript(script)

    def interrupt(self) -> None:
        """Interrupt the running statement, which fails with OperationalError (57014). Any thread may call it."""
        if self.calls.is_closed:
            raise ProgrammingError("the connection was closed")
        self.calls.interrupt()

    def dsn(self) -> str:
        """The connection string for PostgreSQL's clients; see `EmbeddedDatabase.dsn`. Raises OperationalError: nobody listens."""
        self.calls.check()
        return self.calls.dsn()

    def close(self) -> None:
        """Roll back, end the session, and stop the node if this is its last connection. Idempotent."""
        self.calls.close()

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        # Its transaction would keep others from writing.
        calls = self.__dict__.get("calls")
        if calls is not None and not calls.is_closed and calls.is_of_this_process:
            calls.abandon()
            warn(f"a connection to {calls.place} was dropped without being closed", ResourceWarning, source=self)


def connect(
    target: str | os.PathLike[str],
    *,
    name: str = DEFAULT_NAME,
    isolation_level: str | None = "",
    autocommit: bool | int = LEGACY_TRANSACTION_CONTROL,
    check_same_thread: bool = True,
    detect_types: int = 0,
    **options: Any,
) -> Connection:
    """Connect to a database in this process. All connections of the process to a folder share one node.

    Args:
        target: a folder, the metadata of a cluster, or ``memory:``; see `triplicate.database`.
        name: of the database.
        isolation_level, autocommit: see `Connection`.
        check_same_thread: whether other threads are refused. Without it, they wait for each other.
        detect_types: `PARSE_DECLTYPES` and `PARSE_COLNAMES`, as with `sqlite3`.
        options: of `triplicate.database`, such as `port`. The first connection to a place decides.

    Raises:
        OperationalError: it cannot be opened; another process uses the folder. ProgrammingError: an argument is wrong.
    """
    level, control = checked_level(isolation_level), checked_autocommit(autocommit)
    try:
        shared = acquire(target, name, **options)
    except TriplicateError as error:
        raise of_database(error) from error
    try:
        return Connection(shared, isolation_level=level, autocommit=control, check_same_thread=check_same_thread, detect_types=detect_types)
    except BaseException:
        release(shared)
        raise
