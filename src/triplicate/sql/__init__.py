"""The replicated SQL database: SQLite as the state machine, an ordered row log as its input.

The parts of a node are loaded at their first use: clients need only the directory, the records and the settings.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from triplicate.config.node_settings import NodeSettings
from triplicate.replica import EVERYWHERE, LONGEST_LEASE_S, ListedNode, NodeEntry, PlacedReplica, Placement, listed_nodes, registered_nodes
from triplicate.sql.backup.core.manifest import Manifest as BackupManifest
from triplicate.sql.backup.core.target import AtPosition, AtTime, AtTransaction, Target, parse_number, parse_time
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.committed_changes import ChangeType, CommittedChange, CommittedTransaction
from triplicate.sql.core.declared_types import parse_declared
from triplicate.sql.core.interface import Row, StatementKind
from triplicate.sql.core.parameter_binding import Parameters
from triplicate.sql.core.records import (
    BatchHeader,
    RowKind,
    RowRun,
    SchemaChange,
    SettingChange,
    Transaction,
    decode_header,
    decode_transaction,
    part_of,
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
from triplicate.sql.core.statement_results import StatementResult
from triplicate.sql.core.table_shape import TableShape
from triplicate.sql.hosting.connection_string import connection_string
from triplicate.sql.hosting.database_directory import (
    LEASE_S,
    Administrator,
    DatabaseInfo,
    create_database,
    database_file,
    database_info,
    database_names,
    login_secret,
    read_info,
    set_administrator,
    wait_for_leader,
)
from triplicate.sql.hosting.dropping import DroppedDatabase, drop_database, dropped_databases, rename_database, undelete_database
from triplicate.sql.hosting.leader_moves import choose_leader, move_leader
from triplicate.sql.hosting.node_changes import remove_node
from triplicate.sql.hosting.placement_changes import (
    alter_placement,
    drain_node,
    new_placement,
    placed_databases,
    set_node_weight,
    undrain_node,
)

if TYPE_CHECKING:
    from triplicate.sql.backup.core.dump_text import TABLE_OF_CONTENTS, begins_pg_dump, unreadable_folder, unreadable_form
    from triplicate.sql.backup.core.sql_text import BEGIN_MARK, MARKED_BYTES, begins_sqlite_dump, is_cut_off
    from triplicate.sql.engine.in_process_session import InProcessSession, PreparedCache, StartedStatement
    from triplicate.sql.engine.session import SqlSession
    from triplicate.sql.engine.sql_database import SqlDatabase
    from triplicate.sql.hosting.change_feed import changes
    from triplicate.sql.hosting.database_backups import (
        back_up_database,
        clone_database,
        export_database,
        import_database,
        restore_database,
        verify_backup,
    )
    from triplicate.sql.hosting.database_node import DatabaseNode
    from triplicate.sql.hosting.hosted_database import HostedDatabase
    from triplicate.sql.hosting.hosted_databases import HostedDatabases
    from triplicate.sql.hosting.restoring import NewDatabase
    from triplicate.sql.pg import PostgresServer, ServerLimits, ServerSecurity
    from triplicate.sql.storage.memory_limit import limit_memory, reserve_small_blocks

__all__ = [
    "BEGIN_MARK",
    "EVERYWHERE",
    "LEASE_S",
    "LONGEST_LEASE_S",
    "MARKED_BYTES",
    "TABLE_OF_CONTENTS",
    "Administrator",
    "AtPosition",
    "AtTime",
    "AtTransaction",
    "BackupManifest",
    "BatchHeader",
    "ChangeType",
    "ColumnAdded",
    "ColumnDropped",
    "ColumnRenamed",
    "CommittedChange",
    "CommittedTransaction",
    "DatabaseInfo",
    "DatabaseNode",
    "DroppedDatabase",
    "HostedDatabase",
    "HostedDatabases",
    "InProcessSession",
    "ListedNode",
    "NewDatabase",
    "NodeEntry",
    "NodeSettings",
    "Parameters",
    "PlacedReplica",
    "Placement",
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
    "Target",
    "Transaction",
    "Value",
    "alter_placement",
    "back_up_database",
    "begins_pg_dump",
    "begins_sqlite_dump",
    "changes",
    "choose_leader",
    "clone_database",
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
    "export_database",
    "fold",
    "import_database",
    "is_cut_off",
    "limit_memory",
    "listed_nodes",
    "login_secret",
    "move_leader",
    "new_placement",
    "parse_declared",
    "parse_number",
    "parse_time",
    "part_of",
    "placed_databases",
    "read_info",
    "registered_nodes",
    "remove_node",
    "rename_database",
    "reserve_small_blocks",
    "restore_database",
    "set_administrator",
    "set_node_weight",
    "table_change",
    "undelete_database",
    "undrain_node",
    "unreadable_folder",
    "unreadable_form",
    "verify_backup",
    "wait_for_leader",
]

_LAZY_EXPORTS = {
    "backup.core.dump_text": ("TABLE_OF_CONTENTS", "begins_pg_dump", "unreadable_folder", "unreadable_form"),
    "backup.core.sql_text": ("BEGIN_MARK", "MARKED_BYTES", "begins_sqlite_dump", "is_cut_off"),
    "engine.in_process_session": ("InProcessSession", "PreparedCache", "StartedStatement"),
    "engine.session": ("SqlSession",),
    "engine.sql_database": ("SqlDatabase",),
    "hosting.change_feed": ("changes",),
    "hosting.database_backups": (
        "back_up_database",
        "clone_database",
        "export_database",
        "import_database",
        "restore_database",
        "verify_backup",
    ),
    "hosting.database_node": ("DatabaseNode",),
    "hosting.hosted_database": ("HostedDatabase",),
    "hosting.hosted_databases": ("HostedDatabases",),
    "hosting.restoring": ("NewDatabase",),
    "pg": ("PostgresServer", "ServerLimits", "ServerSecurity"),
    "storage.memory_limit": ("limit_memory", "reserve_small_blocks"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY_EXPORTS.items():
        if name in names:
            return getattr(importlib.import_module(f"triplicate.sql.{module}"), name)
    raise AttributeError(f"module 'triplicate.sql' has no attribute {name!r}")
