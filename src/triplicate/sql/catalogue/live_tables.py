"""Tables of what a node does, and of what it reads elsewhere. Their rows are made for each statement that reads them.

A statement gets them as a parameter: `triplicate_nodes` in its text becomes `triplicate_nodes($1)`, a table-valued function whose hidden
last column is the rows as JSON. So a statement sees one state of them, by the rights of its role, on any connection. See
`triplicate.sql.pg.rewrite.live_uses` for clients, and `triplicate.sql.engine.live_parameters` for sessions of the process.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import apsw

from triplicate.errors import SqlError
from triplicate.sql.catalogue.system_tables import SYSTEM_TABLES
from triplicate.sql.core.interface import Row

LIVE_TABLES: dict[str, str] = {
    "triplicate_nodes": "node text, address text, tls boolean, is_this_node boolean",
    "triplicate_copies": "node text, address text, role text, is_leader boolean, position bigint, behind bigint, reason text",
    "triplicate_sessions": "pid integer, role text, application text, address text, tls text, state text, writer text,"
    " connected timestamptz, statement_start timestamptz, state_change timestamptz, statement text",
    "triplicate_open_transactions": "pid integer, role text, state text, writer text, began timestamptz, statement text",
    "triplicate_statements": "role text, statement text, calls bigint, errors bigint, rows bigint, total_ms real, mean_ms real,"
    " longest_ms real, wait_ms real, writer_wait_ms real, log_wait_ms real, read_wait_ms real",
    "triplicate_locks": "pid integer, role text, granted boolean, began timestamptz, statement text",
    "triplicate_log": "segment bigint, first_position bigint, end_position bigint, records bigint, size_bytes bigint, state text,"
    " first_time timestamptz, last_time timestamptz",
    "triplicate_snapshots": "snapshot text, position bigint, taken timestamptz, size_bytes bigint, stored_bytes bigint, node text,"
    " state text, reason text",
    "triplicate_backups": "kind text, made timestamptz, first_position bigint, position bigint, log_time timestamptz, size_bytes bigint,"
    " place text, maker text, key text",
    "triplicate_changes": "position bigint, committed_at timestamptz, transaction_id bigint, seq bigint, table_name text, change text,"
    " key jsonb, new_row jsonb, old_row jsonb, sql text",
    "pg_stat_activity": "datid oid, datname name, pid integer, leader_pid integer, usesysid oid, usename name, application_name text,"
    " client_addr text, client_hostname text, client_port integer, backend_start timestamptz, xact_start timestamptz,"
    " query_start timestamptz, state_change timestamptz, wait_event_type text, wait_event text, state text, backend_xid text,"
    " backend_xmin text, query_id bigint, query text, backend_type text",
    "pg_stat_statements": "userid oid, dbid oid, toplevel boolean, queryid bigint, query text, calls bigint, total_exec_time real,"
    " min_exec_time real, max_exec_time real, mean_exec_time real, rows bigint",
    "pg_locks": "locktype text, database oid, relation oid, page integer, tuple integer, virtualxid text, transactionid text, classid oid,"
    " objid oid, objsubid integer, virtualtransaction text, pid integer, mode text, granted boolean, fastpath boolean,"
    " waitstart timestamptz",
    "pg_settings": SYSTEM_TABLES["pg_settings"],
}
"""Maps the name of each table to its columns, each with its type."""
FUNCTIONS = frozenset(("triplicate_changes",))
"""The tables that are functions with arguments."""
_ROWS_ON_THE_LOOP = 200
"""Of more rows a thread makes the parameter."""
_HIDDEN = "rows_of_the_statement"


class LiveModule:
    """The module of one table; it has the table's name."""

    def Connect(
        self, connection: apsw.Connection, modulename: str, databasename: str, tablename: str, *args: Any
    ) -> tuple[str, _LiveTable]:
        # Views and triggers must not use these tables: plain SQLite could not read such a schema.
        connection.vtab_config(apsw.SQLITE_VTAB_DIRECTONLY)
        columns = [column.strip() for column in LIVE_TABLES[modulename].split(",")]
        shown = ", ".join('"{}" {}'.format(*column.split()) for column in columns)
        return f'create table t({shown}, "{_HIDDEN}" hidden)', _LiveTable(modulename, len(columns))

    Create = Connect


class _LiveTable:
    def __init__(self, name: str, width: int) -> None:
        self._name = name
        self._width = width

    def BestIndex(self, constraints: Sequence[tuple[int, int]], _orders: object) -> Any:
        rows = [number for number, (column, operator) in enumerate(constraints) if self._is_rows(column, operator)][:1]
        used = [(0, True) if number in rows else None for number in range(len(constraints))]
        return used, len(rows), None, False, 100.0

    def _is_rows(self, column: int, operator: int) -> bool:
        return column == self._width and operator == apsw.SQLITE_INDEX_CONSTRAINT_EQ

    def Open(self) -> _LiveCursor:
        return _LiveCursor(self._name)

    def Disconnect(self) -> None:
        """There is nothing to close."""

    Destroy = Disconnect


class _LiveCursor:
    def __init__(self, name: str) -> None:
        self._name = name
        self._rows: Iterator[Row] = iter(())
        self._row: Row | None = None
        self._number = 0

    def Filter(self, has_rows: int, _text: str | None, values: Sequence[Any] | None) -> None:
        if not has_rows or not values:
            where = (
                "over PostgreSQL's protocol only, in a query's FROM"
                if self._name in (*FUNCTIONS, "pg_settings")
                else "in the FROM of a query only"
            )
            raise SqlError("0A000", f"{self._name} can be read {where}")
        self._rows = iter(json.loads(values[0]))
        self._number = 0
        self.Next()

    def Eof(self) -> bool:
        return self._row is None

    def Rowid(self) -> int:
        return self._number

    def Column(self, number: int) -> Any:
        assert self._row is not None, "SQLite reads columns of an existing row only"
        return self._number if number < 0 else self._row[number] if number < len(self._row) else None

    def Next(self) -> None:
        self._row = next(self._rows, None)
        self._number += 1

    def Close(self) -> None:
        self._row = None


async def rows_parameter(rows: Sequence[Row], offload: Callable[..., Awaitable[str]]) -> str:
    """The value of the parameter with the rows of such a table. `offload` runs a function in a thread."""
    return json.dumps(rows) if len(rows) <= _ROWS_ON_THE_LOOP else await offload(json.dumps, rows)
