"""The replicated SQL database: SQLite as the state machine, an ordered row log as its input."""

from triplicate.config.node_settings import NodeSettings
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.interface import Row, StatementKind
from triplicate.sql.core.parameter_binding import Parameters
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
from triplicate.sql.core.schema_changes import (
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
from triplicate.sql.core.table_shape import TableShape
from triplicate.sql.engine.in_process_session import InProcessSession, PreparedCache, StartedStatement
from triplicate.sql.engine.session import SqlSession
from triplicate.sql.engine.sql_database import SqlDatabase
from triplicate.sql.hosting.connection_string import connection_string
from triplicate.sql.hosting.database_directory import (
    LEASE_S,
    LONGEST_LEASE_S,
    Administrator,
    DatabaseInfo,
    create_database,
    database_file,
    database_info,
    database_names,
    login_secret,
    registered_nodes,
    set_administrator,
    wait_for_leader,
)
from triplicate.sql.hosting.database_node import DatabaseNode
from triplicate.sql.hosting.dropping import DroppedDatabase, drop_database, dropped_databases, rename_database, undelete_database
from triplicate.sql.hosting.hosted_database import HostedDatabase
from triplicate.sql.hosting.hosted_databases import HostedDatabases
from triplicate.sql.pg import PostgresServer, ServerLimits, ServerSecurity

__all__ = [
    "LEASE_S",
    "LONGEST_LEASE_S",
    "Administrator",
    "BatchHeader",
    "ColumnAdded",
    "ColumnDropped",
    "ColumnRenamed",
    "DatabaseInfo",
    "DatabaseNode",
    "DroppedDatabase",
    "HostedDatabase",
    "HostedDatabases",
    "InProcessSession",
    "NodeSettings",
    "Parameters",
    "PostgresServer",
    "PreparedCache",
    "Row",
    "RowKind",
    "RowRun",
    "SchemaChange",
    "ServerLimits",
    "ServerSecurity",
    "SettingChange",
    "SqlDatabase",
    "SqlSession",
    "StartedStatement",
    "StatementKind",
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
    "login_secret",
    "registered_nodes",
    "rename_database",
    "set_administrator",
    "table_change",
    "undelete_database",
    "wait_for_leader",
]
