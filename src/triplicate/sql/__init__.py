"""The replicated SQL database: SQLite as the state machine, an ordered row log as its input."""

from triplicate.config.node import NodeSettings
from triplicate.sql.connection import connection_string
from triplicate.sql.core.columns import Value
from triplicate.sql.core.records import (
    BatchHeader,
    RowKind,
    RowRun,
    SchemaChange,
    SettingChange,
    StatementResult,
    Transaction,
    decode_header,
    decode_transaction,
)
from triplicate.sql.core.tables import TableShape
from triplicate.sql.database import SqlDatabase
from triplicate.sql.directory import (
    LEASE_S,
    LONGEST_LEASE_S,
    DatabaseInfo,
    create_database,
    database_file,
    database_info,
    database_names,
)
from triplicate.sql.dropping import DroppedDatabase, drop_database, dropped_databases, rename_database, undelete_database
from triplicate.sql.hosted import HostedDatabase
from triplicate.sql.node import DatabaseNode
from triplicate.sql.pg import PostgresServer, ServerLimits
from triplicate.sql.schema_changes import (
    ColumnAdded,
    ColumnDropped,
    ColumnRenamed,
    TableChange,
    TableCreated,
    TableDropped,
    TableRenamed,
    fold,
    table_change,
)
from triplicate.sql.session import SqlSession

__all__ = [
    "LEASE_S",
    "LONGEST_LEASE_S",
    "BatchHeader",
    "ColumnAdded",
    "ColumnDropped",
    "ColumnRenamed",
    "DatabaseInfo",
    "DatabaseNode",
    "DroppedDatabase",
    "HostedDatabase",
    "NodeSettings",
    "PostgresServer",
    "RowKind",
    "RowRun",
    "SchemaChange",
    "ServerLimits",
    "SettingChange",
    "SqlDatabase",
    "SqlSession",
    "StatementResult",
    "TableChange",
    "TableCreated",
    "TableDropped",
    "TableRenamed",
    "TableShape",
    "Transaction",
    "Value",
    "connection_string",
    "create_database",
    "database_file",
    "database_info",
    "database_names",
    "decode_header",
    "decode_transaction",
    "drop_database",
    "dropped_databases",
    "fold",
    "rename_database",
    "table_change",
    "undelete_database",
]
