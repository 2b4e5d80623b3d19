"""The replicated SQL database: SQLite as the state machine, an ordered row log as its input."""

from triplicate.config.node_settings import NodeSettings
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.placement import EVERYWHERE, PlacedDatabase, Placement
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
from triplicate.sql.hosting.leader_moves import choose_leader, move_leader
from triplicate.sql.hosting.placed_nodes import ListedNode, NodeEntry, listed_nodes, remove_node
from triplicate.sql.hosting.placement_changes import (
    alter_placement,
    drain_node,
    expected_copies,
    new_placement,
    placed_databases,
    set_node_weight,
    undrain_node,
)
from triplicate.sql.pg import PostgresServer, ServerLimits, ServerSecurity

__all__ = [
    "EVERYWHERE",
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
    "ListedNode",
    "NodeEntry",
    "NodeSettings",
    "PlacedDatabase",
    "Placement",
    "PostgresServer",
    "RowKind",
    "RowRun",
    "SchemaChange",
    "ServerLimits",
    "ServerSecurity",
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
    "alter_placement",
    "choose_leader",
    "connection_string",
    "create_database",
    "database_file",
    "database_info",
    "database_names",
    "decode_header",
    "decode_transaction",
    "drain_node",
    "drop_database",
    "dropped_databases",
    "expected_copies",
    "fold",
    "listed_nodes",
    "login_secret",
    "move_leader",
    "new_placement",
    "placed_databases",
    "registered_nodes",
    "remove_node",
    "rename_database",
    "set_administrator",
    "set_node_weight",
    "table_change",
    "undelete_database",
    "undrain_node",
    "wait_for_leader",
]
