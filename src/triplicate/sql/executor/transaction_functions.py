"""SQL functions of PostgreSQL: ``pg_current_xact_id()``, ``pg_xact_status(id)``, and functions that client libraries call on their own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import apsw

from triplicate.errors import SqlError
from triplicate.sql.catalogue import register_functions, register_tables
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.transaction_numbers import transaction_id
from triplicate.sql.executor.scalars import register_scalars
from triplicate.sql.storage.sqlite_file import ConnectionSetup, open_follower, read_state
from triplicate.sql.storage.transaction_history import committed

_ABORTED_MAX = 100_000
SERVER = f"PostgreSQL 15.0 (Triplicate; the SQL is that of SQLite {apsw.sqlite_lib_version()})"


def _register_constants(connection: apsw.Connection) -> None:
    """Register functions that client libraries call when they connect, or return a connection to a pool."""
    answers: dict[str, Value] = {
        "version": SERVER,
        "current_schema": "public",
        # There are no advisory locks.
        "pg_advisory_unlock_all": None,
    }
    for function, answer in answers.items():
        connection.create_scalar_function(function, lambda *_, answer=answer: answer, 0, flags=apsw.SQLITE_DIRECTONLY)


def _register_refusals(connection: apsw.Connection) -> None:
    """Register functions of sequences, which do not exist here, for a helpful error."""

    def refuse(name: str) -> None:
        raise SqlError(
            "0A000", f"function {name}() is not supported: there are no sequences", hint="INSERT … RETURNING id returns the number"
        )

    for function in ("currval", "lastval", "nextval", "setval"):
        connection.create_scalar_function(function, lambda *_, function=function: refuse(function), -1, flags=apsw.SQLITE_DIRECTONLY)


class TransactionIds:
    """Allocates the numbers of transactions in one epoch of leadership, from 1. Used from several threads: each step is atomic."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self._counter = count(1)
        self.last = 0
        self._in_progress: set[int] = set()
        self._aborted: set[int] = set()
        self._complete_from = 1

    def allocate(self) -> int:
        """A new number, in progress until `finish`."""
        number = next(self._counter)
        self._in_progress.add(number)
        if number > self.last:
            self.last = number
        return number

    def commit(self, numbers: Sequence[int]) -> None:
        """As `finish` with `committed`, for several numbers."""
        self._in_progress.difference_update(numbers)

    def finish(self, number: int, *, committed: bool) -> None:
        """The outcome of a transaction is decided; that of a committed one is stored."""
        if not committed:
            if len(self._aborted) >= _ABORTED_MAX:
                forgotten = min(self._aborted)
                self._aborted.discard(forgotten)
                self._complete_from = max(self._complete_from, forgotten + 1)
            self._aborted.add(number)
        self._in_progress.discard(number)

    def status(self, number: int) -> str | None:
        """The status of one of this epoch's numbers, or None when only the tables have it.

        The tables alone do not suffice: a query sees them as they were when it began.
        """
        if number in self._in_progress:
            return "in progress"
        if number in self._aborted:
            return "aborted"
        return "committed" if number >= self._complete_from else None


class TransactionContext:
    """The state of the functions on one connection: the ids of this node's epoch (None while it follows), and the running transaction's
    number.
    """

    def __init__(self) -> None:
        self.ids: TransactionIds | None = None
        self.number: int | None = None

    def register(self, connection: apsw.Connection) -> None:
        def current(*_: Value) -> Value:
            return transaction_id(self.ids.epoch if self.ids else 0, self.require_number())

        def status(*arguments: Value) -> Value:
            return self.status(connection, arguments[0])

        connection.create_scalar_function("pg_current_xact_id", current, 0, flags=apsw.SQLITE_DIRECTONLY)
        connection.create_scalar_function("pg_xact_status", status, 1, flags=apsw.SQLITE_DIRECTONLY)
        connection.create_scalar_function("pg_is_in_recovery", lambda *_: 0 if self.ids else 1, 0, flags=apsw.SQLITE_DIRECTONLY)
        _register_constants(connection)
        register_scalars(connection)
        register_functions(connection, register_tables(connection))
        _register_refusals(connection)

    def require_number(self) -> int:
        """The running transaction's number, allocated by the first call."""
        if self.ids is None:
            raise SqlError("25006", "this node is not the leader and gives no transaction ids")
        if self.number is None:
            self.number = self.ids.allocate()
        return self.number

    def status(self, connection: apsw.Connection, identity: Value) -> str | None:
        """``committed``, ``aborted``, ``in progress`` (also until recovery has decided), or None when the id is no longer stored."""
        if identity is None:
            return None
        wanted = int(identity) if isinstance(identity, (int, str)) else 0
        if wanted <= 0:
            raise SqlError("22023", f"{identity!r} is not a transaction id")
        epoch, number = wanted >> 40, wanted & (1 << 40) - 1
        ids = self.ids
        if ids is not None and epoch >= ids.epoch:
            if epoch > ids.epoch or number > ids.last:
                raise SqlError("22023", f"transaction ID {wanted} is in the future")
            known = ids.status(number)
            if known is not None:
                return known
        found = committed(connection, wanted)
        if found is not False:
            return "committed" if found else None
        # A batch or control entry of a later epoch shows that recovery has decided about this one.
        decided = ids is not None or epoch < read_state(connection).epoch
        return "aborted" if decided else "in progress"


def open_applier_connection(path: str, setup: ConnectionSetup | None = None) -> apsw.Connection:
    """As `open_follower`, with the functions that views and triggers call: ALTER TABLE resolves the columns of all views."""
    connection = open_follower(path, setup)
    TransactionContext().register(connection)
    return connection
