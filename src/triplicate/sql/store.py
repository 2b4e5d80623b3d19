"""One replica's local file: how its connections are opened, and the internal tables that make the file a checkpoint of the log.

The log is the truth: the file is in WAL mode with synchronous NORMAL, so after a power failure it is consistent but may be at an
earlier position than was reported. Everything here blocks and runs on a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from triplicate.errors import FormatError

from .core.records import StatementResult, decode_results

STORE_FORMAT = 1
KEPT_POSITIONS = 200_000
"""Results and ids of transactions are kept for at least so many log records. Part of the format: every copy forgets alike."""
_PRUNE_STEP = 1024

ConnectionSetup = Callable[[apsw.Connection], None]
"""Called on each new connection, for example to register functions. It must do the same on every node."""

_TABLES = """
create table triplicate_state(
    id integer primary key check (id = 1), format integer not null, database blob not null, position integer not null,
    epoch integer not null, batch integer not null, schema_version integer not null, pruned_through integer not null, diverged text
);
create table triplicate_transactions(first_id integer primary key, last_id integer not null, position integer not null);
create index triplicate_transactions_position on triplicate_transactions(position);
create table triplicate_requests(
    request_id text primary key, transaction_id integer not null, position integer not null, results blob not null
) without rowid;
create index triplicate_requests_position on triplicate_requests(position);
create table triplicate_tables(name text primary key, change_images text not null) without rowid;
"""


@dataclass(frozen=True, slots=True)
class StoreState:
    """Where the file stands."""

    database: bytes
    position: int
    """Offset after the last log record applied."""
    epoch: int
    """Epoch of the last batch applied, or of a later leader that has been seen."""
    batch: int
    schema_version: int
    pruned_through: int
    """Transaction ids up to this one may have been forgotten."""
    diverged: str | None
    """Why this copy is wrong and must not be served."""


@dataclass(frozen=True, slots=True)
class StoredResult:
    transaction_id: int
    results: tuple[StatementResult, ...]


def transaction_id(epoch: int, number: int) -> int:
    """The 64-bit id that ``pg_current_xact_id()`` shows."""
    return epoch << 40 | number


def open_store(path: str, database: bytes) -> None:
    """Make the file with its internal tables, or check that it is of this database.

    Raises:
        FormatError: it was written by a later release. ValueError: it belongs to another database.
    """
    connection = apsw.Connection(path)
    try:
        connection.set_busy_timeout(5000)
        connection.execute("pragma journal_mode = wal")
        if not connection.execute("select 1 from sqlite_schema where name = 'triplicate_state'").fetchall():
            with connection:
                connection.execute(_TABLES)
                connection.execute("insert into triplicate_state values(1, ?, ?, 0, 0, 0, 0, 0, null)", (STORE_FORMAT, database))
        stored = _row(connection, "select format, database from triplicate_state")
        if stored is None or stored[0] != STORE_FORMAT:
            raise FormatError(f"{path} has format {stored and stored[0]}; this release knows {STORE_FORMAT}")
        if stored[1] != database:
            raise ValueError(f"{path} belongs to another database")
    finally:
        connection.close()


def open_writer(path: str, setup: ConnectionSetup | None = None) -> apsw.Connection:
    """The leader's connection: triggers and foreign keys act, SQLite's own tables and shadow tables are protected."""
    connection = _open(path, setup)
    connection.execute("pragma foreign_keys = on")
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    return connection


def open_follower(path: str, setup: ConnectionSetup | None = None) -> apsw.Connection:
    """The connection that applies the log: nothing but the logged changes may happen, shadow tables must be writable."""
    connection = _open(path, setup)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.execute("pragma foreign_keys = off; pragma ignore_check_constraints = on")
    return connection


def open_reader(path: str, setup: ConnectionSetup | None = None) -> apsw.Connection:
    """A connection that cannot write."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=100)
    connection.set_busy_timeout(5000)
    connection.execute("pragma query_only = on")
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    if setup is not None:
        setup(connection)
    return connection


def _open(path: str, setup: ConnectionSetup | None) -> apsw.Connection:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=500)
    connection.set_busy_timeout(5000)
    connection.execute("pragma journal_mode = wal; pragma synchronous = normal")
    if setup is not None:
        setup(connection)
    return connection


def read_state(connection: apsw.Connection) -> StoreState:
    row = _row(connection, "select database, position, epoch, batch, schema_version, pruned_through, diverged from triplicate_state")
    if row is None:
        raise FormatError("the local file has lost its state row")
    return StoreState(*row)


def mark_diverged(connection: apsw.Connection, reason: str) -> None:
    """Remember across restarts that this copy is wrong. Outside a transaction."""
    connection.execute("update triplicate_state set diverged = ?", (reason,))


def mark_epoch(connection: apsw.Connection, epoch: int) -> None:
    """Remember that a leader of this epoch was seen, which decides the fate of transactions of earlier ones."""
    connection.execute("update triplicate_state set epoch = ? where epoch < ?", (epoch, epoch))


def full_image_tables(connection: apsw.Connection) -> frozenset[str]:
    return frozenset(str(name) for (name,) in connection.execute("select name from triplicate_tables where change_images = 'full'"))


def set_change_images(connection: apsw.Connection, table: str, value: str) -> None:
    if value == "keys":
        connection.execute("delete from triplicate_tables where name = ?", (table,))
    else:
        connection.execute("insert or replace into triplicate_tables values(?, ?)", (table, value))


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What a batch leaves in the internal tables, on the leader and on followers alike."""

    epoch: int
    batch: int
    start: int
    """Offset of its first record."""
    end: int
    """Offset after its last record."""
    schema_version: int
    numbers: Sequence[int]
    requests: Sequence[tuple[str, int, bytes]]
    """Request id, transaction number, encoded results."""


def record_batch(connection: apsw.Connection, facts: BatchFacts) -> None:
    """Store position, transaction ids and results of a batch, in the open transaction that holds its changes."""
    execute = connection.execute
    execute(
        "update triplicate_state set position = ?, epoch = max(epoch, ?), batch = ?, schema_version = ?",
        (facts.end, facts.epoch, facts.batch, facts.schema_version),
    )
    for first, last in _runs(facts.numbers):
        execute(
            "insert into triplicate_transactions values(?, ?, ?)",
            (transaction_id(facts.epoch, first), transaction_id(facts.epoch, last), facts.end),
        )
    for request_id, number, results in facts.requests:
        execute(
            "insert or replace into triplicate_requests values(?, ?, ?, ?)",
            (request_id, transaction_id(facts.epoch, number), facts.end, results),
        )
    if facts.start // _PRUNE_STEP != facts.end // _PRUNE_STEP:
        _prune(connection, facts.end - KEPT_POSITIONS)


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _prune(connection: apsw.Connection, before: int) -> None:
    if before <= 0:
        return
    connection.execute(
        "update triplicate_state set pruned_through ="
        " max(pruned_through, coalesce((select max(last_id) from triplicate_transactions where position < ?), 0))",
        (before,),
    )
    connection.execute("delete from triplicate_transactions where position < ?", (before,))
    connection.execute("delete from triplicate_requests where position < ?", (before,))


def stored_result(connection: apsw.Connection, request_id: str) -> StoredResult | None:
    """The result kept under a request id, or None."""
    row = _row(connection, "select transaction_id, results from triplicate_requests where request_id = ?", request_id)
    return None if row is None else StoredResult(row[0], decode_results(row[1]))


def committed(connection: apsw.Connection, identity: int) -> bool | None:
    """True when a transaction's id is among those kept; None when it may have been forgotten; False when it is not there."""
    row = _row(connection, "select last_id from triplicate_transactions where first_id <= ? order by first_id desc limit 1", identity)
    if row is not None and row[0] >= identity:
        return True
    return None if identity <= read_state(connection).pruned_through else False


def _row(connection: apsw.Connection, sql: str, *parameters: Any) -> tuple[Any, ...] | None:
    rows = connection.execute(sql, parameters).fetchall()
    return rows[0] if rows else None
