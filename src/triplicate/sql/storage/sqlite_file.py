"""The local file of one copy: opening its connections, and the internal tables that make the file a checkpoint of the log.

The log is authoritative. The file is in WAL mode with synchronous NORMAL. After a power failure it is consistent, but its position may be
earlier than the position that was reported. All functions block and run on a worker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import apsw

from triplicate.errors import FormatError
from triplicate.runtime import require_sound_sqlite
from triplicate.sql.storage import transaction_history
from triplicate.sql.storage.transaction_history import CommitRecord

STORE_FORMAT = 2
SQLITE_PAGE_SIZE_AT = 16
"""Where a SQLite file has the size of its pages: two bytes, big-endian; 1 stands for 65,536."""

ConnectionSetup = Callable[[apsw.Connection], None]
"""Called on each new connection, for example to register functions. Every node must register the same functions."""

_TABLES = """
create table triplicate_state(
    id integer primary key check (id = 1), format integer not null, database blob not null, position integer not null,
    epoch integer not null, batch integer not null, schema_version integer not null, pruned_through integer not null, diverged text
);
create table triplicate_tables(name text primary key, change_images text not null) without rowid;
"""


@dataclass(frozen=True, slots=True)
class StoreState:
    """The row of ``triplicate_state``."""

    database: bytes
    position: int
    """Offset after the last log record applied."""
    epoch: int
    """Epoch of the last batch applied, or of a later leader that the copy has seen."""
    batch: int
    schema_version: int
    pruned_through: int
    """Transaction ids up to this one may have been deleted from the history."""
    diverged: str | None
    """Why this copy is wrong and must not be served."""


VALUE_BYTES = 64 * 1024 * 1024
"""The longest value that a statement may compute, also in between, and the longest row. A transaction stores 4 MiB."""


def open_store(path: str, database: bytes) -> None:
    """Create the file with its internal tables, or check that it belongs to this database. A file of an earlier format is upgraded.

    Args:
        path: the SQLite file. database: the database's identity, 16 bytes.

    Raises:
        FormatError: a later release wrote the file. ValueError: the file belongs to another database. ConfigError: SQLite is too old.
    """
    require_sound_sqlite()
    connection = apsw.Connection(path)
    try:
        connection.set_busy_timeout(5000)
        connection.execute("pragma journal_mode = wal")
        if not connection.execute("select 1 from sqlite_schema where name = 'triplicate_state'").fetchall():
            with connection:
                connection.execute(_TABLES)
                connection.execute(transaction_history.TABLES)
                connection.execute("insert into triplicate_state values(1, ?, ?, 0, 0, 0, 0, 0, null)", (STORE_FORMAT, database))
        _upgrade(connection)
        stored = _row(connection, "select format, database from triplicate_state")
        if stored is None or stored[0] != STORE_FORMAT:
            raise FormatError(
                f"{path}: written in format {stored and stored[0]}, this release knows {STORE_FORMAT}: "
                "start the release that wrote it, or a newer one"
            )
        if stored[1] != database:
            raise ValueError(f"{path} belongs to another database")
    finally:
        connection.close()


def _upgrade(connection: apsw.Connection) -> None:
    if _row(connection, "select 1 from triplicate_state where format = 1") is None:
        return
    with connection:
        transaction_history.upgrade_from_format_1(connection)
        connection.execute("update triplicate_state set format = ?", (STORE_FORMAT,))


def open_writer(path: str, setup: ConnectionSetup | None = None) -> apsw.Connection:
    """The leader's connection: triggers and foreign keys are on, and SQLite's own tables and shadow tables are protected."""
    connection = _open(path, setup)
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, VALUE_BYTES)
    connection.execute("pragma foreign_keys = on")
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    # Without this setting, SQLite reads "name" in an index as a text if no column has the name. The index is damaged once a column gets
    # it. Existing indexes of this kind stay.
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    return connection


def open_follower(path: str, setup: ConnectionSetup | None = None) -> apsw.Connection:
    """The connection that applies the log. Triggers and foreign keys are off, as the log has their effects; shadow tables are writable."""
    connection = _open(path, setup)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.execute("pragma foreign_keys = off; pragma ignore_check_constraints = on")
    return connection


def open_reader(path: str, setup: ConnectionSetup | None = None) -> apsw.Connection:
    """A read-only connection."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=100)
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, VALUE_BYTES)
    connection.set_busy_timeout(5000)
    connection.execute("pragma query_only = on")
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    if setup is not None:
        setup(connection)
    return connection


def _open(path: str, setup: ConnectionSetup | None) -> apsw.Connection:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=500)
    connection.set_busy_timeout(5000)
    # The first pragma returns a row, and apsw runs what follows in the same text only when the row is fetched.
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "normal")
    if setup is not None:
        setup(connection)
    return connection


def read_state(connection: apsw.Connection) -> StoreState:
    """The row of ``triplicate_state``. Raises FormatError if it is missing."""
    row = _row(connection, "select database, position, epoch, batch, schema_version, pruned_through, diverged from triplicate_state")
    if row is None:
        raise FormatError("the local file has no row in triplicate_state; move its folder away, and the node builds the copy again")
    return StoreState(*row)


def mark_diverged(connection: apsw.Connection, reason: str) -> None:
    """Record durably that this copy is wrong and must not be served. No transaction may be open."""
    connection.pragma("synchronous", "full")
    connection.execute("update triplicate_state set diverged = ?", (reason,))


def mark_epoch(connection: apsw.Connection, epoch: int) -> None:
    """Record that a leader of this epoch was seen, which decides transactions of earlier epochs."""
    connection.execute("update triplicate_state set epoch = ? where epoch < ?", (epoch, epoch))


def full_image_tables(connection: apsw.Connection) -> frozenset[str]:
    """Names of the tables whose changes are logged with all columns."""
    return frozenset(str(name) for (name,) in connection.execute("select name from triplicate_tables where change_images = 'full'"))


def set_change_images(connection: apsw.Connection, table: str, value: str) -> None:
    if value == "keys":
        connection.execute("delete from triplicate_tables where name = ?", (table,))
    else:
        connection.execute("insert or replace into triplicate_tables values(?, ?)", (table, value))


def record_batch(connection: apsw.Connection, batch: CommitRecord) -> None:
    """Store position, transaction ids and results of a batch, in the open transaction that contains its changes."""
    connection.execute(
        "update triplicate_state set position = ?, epoch = max(epoch, ?), batch = ?, schema_version = ?",
        (batch.end, batch.epoch, batch.batch, batch.schema_version),
    )
    transaction_history.record_history(connection, batch)


def _row(connection: apsw.Connection, sql: str, *parameters: Any) -> tuple[Any, ...] | None:
    rows = connection.execute(sql, parameters).fetchall()
    return rows[0] if rows else None
