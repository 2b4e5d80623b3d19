"""Databases in this process by DB-API 2.0 (PEP 249), with the habits of Python's `sqlite3`.

    import triplicate.dbapi as db

    connection = db.connect("app.triplicate")
    with connection:
        connection.execute("insert into notes(text) values (?)", ("hello",))

Statements are in SQLite's dialect. A commit is acknowledged by the replicated log.
"""

from triplicate.dbapi.connection import Connection, connect
from triplicate.dbapi.connection_calls import LEGACY_TRANSACTION_CONTROL
from triplicate.dbapi.cursor import PARSE_COLNAMES, PARSE_DECLTYPES
from triplicate.dbapi.cursor import DatabaseCursor as Cursor
from triplicate.dbapi.pep249_errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004  the name is PEP 249's
)
from triplicate.dbapi.pep249_values import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    register_adapter,
    register_converter,
)
from triplicate.dbapi.rows import Row
from triplicate.dbapi.shared_databases import SharedDatabase

apilevel = "2.0"
threadsafety = 3
"""Threads may share connections and cursors, if the connection does not check its thread."""
paramstyle = "qmark"

__all__ = [
    "BINARY",
    "DATETIME",
    "LEGACY_TRANSACTION_CONTROL",
    "NUMBER",
    "PARSE_COLNAMES",
    "PARSE_DECLTYPES",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Row",
    "SharedDatabase",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "register_adapter",
    "register_converter",
    "threadsafety",
]
