"""An unreplicated engine for the server's tests: the interface of `sql.interface` over one SQLite connection, and nothing else.

The tests in tests/clients run the same conversations against the replicated engine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import apsw
import apsw.ext

from triplicate.errors import SqlError
from triplicate.sql.catalogue import register_functions, register_tables
from triplicate.sql.core.access_rights import NOTHING_STORED
from triplicate.sql.core.audit import IN_PROCESS, ConnectedClient
from triplicate.sql.core.database_activity import DatabaseActivity
from triplicate.sql.core.interface import (
    CheckRows,
    Column,
    Prepared,
    Result,
    Row,
    SchemaMoved,
    SpecialColumns,
    StatementKind,
    TransactionStatus,
    Value,
)
from triplicate.sql.core.read_levels import DEFAULT_READS, ReadSettings
from triplicate.sql.core.role_login import RoleLogin
from triplicate.sql.core.session_roles import SessionRoles
from triplicate.sql.core.statement_waits import StatementWaits
from triplicate.sql.core.transaction_block import TransactionBlock
from triplicate.sql.engine.cursors import RowsCursor
from triplicate.sql.executor.scalars import register_scalars
from triplicate.sql.storage.sqlite_schema import check_references, columns_of, special_columns_of

_CONTROL = {
    "BEGIN IMMEDIATE": StatementKind.BEGIN_IMMEDIATE,
    "BEGIN": StatementKind.BEGIN,
    "COMMIT": StatementKind.COMMIT,
    "ROLLBACK TO": StatementKind.ROLLBACK_TO,
    "ROLLBACK": StatementKind.ROLLBACK,
    "SAVEPOINT": StatementKind.SAVEPOINT,
    "RELEASE": StatementKind.RELEASE,
}


def _kind(sql: str, is_readonly: bool) -> tuple[StatementKind, str]:
    upper = sql.upper()
    for words, kind in _CONTROL.items():
        if upper.startswith(words):
            return kind, words.split()[0]
    first = upper.split(None, 1)[0]
    if first in ("CREATE", "DROP", "ALTER"):
        return StatementKind.SCHEMA, " ".join(upper.split()[:2])
    return (StatementKind.READ, "SELECT") if is_readonly else (StatementKind.WRITE, first)


class LocalBulkChange:
    def __init__(self, session: LocalSession, connection: apsw.Connection, prepared: Prepared) -> None:
        self._session = session
        self._connection = connection
        self._prepared = prepared
        self._changed = 0
        self.counts: list[int] = []

    async def run(self, rows: Iterable[Sequence[Value]]) -> None:
        self.counts = []
        self._session.bulk_runs += 1
        try:
            with self._connection:
                self._connection.executemany(self._prepared.sql, self._counted(rows))
        except apsw.Error as error:
            raise self._session.failure(error) from None
        self._changed += sum(self.counts)

    def _counted(self, rows: Iterable[Sequence[Value]]) -> Iterator[Sequence[Value]]:
        for row in rows:
            yield row
            self.counts.append(self._connection.changes())

    def finish(self) -> int:
        return self._changed


class LocalSession:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.status = TransactionStatus.IDLE
        self._block = TransactionBlock()
        self.innermost_savepoint = self._block.innermost_savepoint
        self.ended: asyncio.Future[SqlError] = asyncio.get_running_loop().create_future()
        self.travels: list[str | None] = []
        self.request_ids: list[str | None] = []
        self.started = 0
        self.bulk_runs = 0
        self.roles = SessionRoles("", is_administrator=True)
        self.access = NOTHING_STORED
        self.reads = DEFAULT_READS
        self.moved_before: set[int] = set()
        """The starts, counted from 1, that are answered as if the schema had just changed."""

    async def prepare(self, sql: str) -> Prepared:
        if not sql.strip():
            return Prepared(sql, StatementKind.EMPTY, (), (), "")
        try:
            details = apsw.ext.query_info(self._connection, sql)
        except apsw.Error as error:
            raise self.failure(error) from None
        kind, tag = _kind(sql, details.is_readonly)
        ends = (StatementKind.ROLLBACK, StatementKind.COMMIT, StatementKind.ROLLBACK_TO)
        if self.status is TransactionStatus.FAILED and kind not in ends:
            raise SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        described = details.description_full or details.description or ()
        columns = tuple(
            Column(item[0], item[1] if len(item) > 1 else None, item[3] if len(item) > 3 else None, item[4] if len(item) > 4 else None)
            for item in described
        )
        return Prepared(sql, kind, columns, tuple(details.bindings_names), tag)

    def failure(self, error: Exception) -> SqlError:
        if self.status is TransactionStatus.ACTIVE:
            self.status = TransactionStatus.FAILED
        text = str(error)
        state = "42P01" if "no such table" in text else "23505" if "UNIQUE" in text else "42601" if "syntax" in text else "XX000"
        return SqlError(state, text)

    writer_use = ""
    waits = StatementWaits(time.monotonic)

    @property
    def sees_shared_schema(self) -> bool:
        return self.status is TransactionStatus.IDLE

    async def check_rights(self, prepared: Prepared, *, locks: bool = False) -> None:
        return None

    def set_reads(self, settings: ReadSettings) -> None:
        self.reads = settings

    async def verifier_of(self, password: str) -> str:
        raise AssertionError("this engine stores no roles")

    def check_prepared(self, prepared: Prepared) -> None:
        return None

    @property
    def schema_version(self) -> tuple[int, int]:
        return int(self._connection.pragma("schema_version")), 0

    async def start(
        self,
        prepared: Prepared,
        parameters: Sequence[Value],
        schema_version: tuple[int, int] | None = None,
        check_rows: CheckRows | None = None,
    ) -> RowsCursor:
        self.started += 1
        if self.started in self.moved_before:
            raise SchemaMoved
        sql = prepared.sql
        if prepared.kind is StatementKind.COMMIT and self.status is TransactionStatus.FAILED:
            sql = "ROLLBACK"
        names = prepared.parameters
        before = self._connection.total_changes()
        try:
            bindings = {name: value for name, value in zip(names, parameters, strict=True) if name} if any(names) else tuple(parameters)
            with self._connection if check_rows is not None else nullcontext():
                rows: list[Row] = self._connection.execute(sql, bindings or None).fetchall()
                if check_rows is not None:
                    check_rows(rows)
        except apsw.Error as error:
            raise self.failure(error) from None
        self.status = TransactionStatus.ACTIVE if self._connection.in_transaction else TransactionStatus.IDLE
        changes = {
            StatementKind.SAVEPOINT: self._block.save,
            StatementKind.RELEASE: self._block.release,
            StatementKind.ROLLBACK_TO: self._block.rollback_to,
        }
        if prepared.kind in changes:
            changes[prepared.kind](sql.split()[-1])
        return RowsCursor(prepared.columns, rows, self._connection.total_changes() - before)

    async def table_columns(self, table: str) -> list[tuple[str, str]] | None:
        return columns_of(self._connection, table)

    async def set_request_id(self, request_id: str | None) -> None:
        self.request_ids.append(request_id)

    async def travel(self, point: str | None) -> int | None:
        self.travels.append(point)
        return None if point is None else 7

    async def session_as_of(self, point: str) -> LocalSession:
        raise AssertionError("this engine keeps no past")

    async def special_columns(self, table: str) -> SpecialColumns:
        return special_columns_of(self._connection, table)

    async def offload(self, function: Callable[..., Result], *arguments: Any) -> Result:
        return function(*arguments)

    async def claim_writer(self, tag: str) -> None:
        return None

    async def bulk_change(self, prepared: Prepared, *, is_one_statement: bool) -> LocalBulkChange:
        return LocalBulkChange(self, self._connection, prepared)

    async def check_constraints(self) -> None:
        check_references(self._connection)

    def fail(self) -> None:
        if self.status is TransactionStatus.ACTIVE:
            self.status = TransactionStatus.FAILED

    def cancel(self) -> None:
        self._connection.interrupt()

    async def close(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("rollback")


class LocalDatabase:
    def __init__(self, name: str = "shop") -> None:
        self.name = name
        self.is_leader = True
        self.leader_hint = None
        self.position = 0
        self.generation = 0
        self.activity = DatabaseActivity()
        self._connection = apsw.Connection(":memory:")
        # A name in quotes that SQLite does not know would be a text.
        self._connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        self._connection.create_scalar_function("pg_advisory_unlock_all", lambda *_: None, 0)
        register_scalars(self._connection)
        self._connection.create_scalar_function("pg_is_in_recovery", lambda *_: 0, 0)
        register_functions(self._connection, register_tables(self._connection))
        self.sessions: list[LocalSession] = []

        self.roles: dict[str, RoleLogin] = {}
        self.clients: list[ConnectedClient] = []

    async def session(self, application_name: str = "", client: ConnectedClient = IN_PROCESS) -> LocalSession:
        session = LocalSession(self._connection)
        self.sessions.append(session)
        self.clients.append(client)
        return session

    async def role_login(self, name: str) -> RoleLogin | None:
        return self.roles.get(name)


class LocalDatabases:
    starting = False
    is_partial = False

    def __init__(self) -> None:
        self.shop = LocalDatabase()
        self.other = LocalDatabase("other")

    def get(self, name: str) -> LocalDatabase | None:
        return {"shop": self.shop, "other": self.other}.get(name)

    def names(self) -> list[str]:
        return ["other", "shop"]
