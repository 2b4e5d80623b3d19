"""The replicated SQL database: SQLite as the state machine, an ordered row log as its input."""

from triplicate.config.node import NodeSettings
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
    DatabaseInfo,
    DatabaseStatus,
    create_database,
    database_file,
    database_info,
    database_names,
    database_status,
)
from triplicate.sql.node import DatabaseNode, HostedDatabase

__all__ = [
    "BatchHeader",
    "DatabaseInfo",
    "DatabaseNode",
    "DatabaseStatus",
    "HostedDatabase",
    "NodeSettings",
    "RowKind",
    "RowRun",
    "SchemaChange",
    "SettingChange",
    "SqlDatabase",
    "StatementResult",
    "TableShape",
    "Transaction",
    "create_database",
    "database_file",
    "database_info",
    "database_names",
    "database_status",
    "decode_header",
    "decode_transaction",
]
