"""Running a client's changes on the leader's writing connection, with the capture of the rows that they change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import apsw

from triplicate.errors import SqlError
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.interface import Prepared, Row, StatementKind
from triplicate.sql.core.notifications import Notification
from triplicate.sql.core.schema_versions import SchemaVersions
from triplicate.sql.executor.authorizer import Authorizer
from triplicate.sql.executor.change_capture import ChangeCapture
from triplicate.sql.executor.notifying import NotifyStatements
from triplicate.sql.executor.role_statements import RoleStatements
from triplicate.sql.executor.schema_statements import SchemaStatements
from triplicate.sql.executor.short_reads import size_of
from triplicate.sql.executor.statement_batches import StatementOutcome
from triplicate.sql.executor.stored_access import StoredAccess
from triplicate.sql.storage.sqlite_schema import relations_of

_RETURNED_BYTES = 64 * 1024 * 1024
"""Upper bound on the text and bytes of the rows of RETURNING, which wait for the log in memory."""


class ChangeRunner:
    """Runs changes, one at a time, inside the open transaction. The caller begins a savepoint before and ends it afterwards.

    Args:
        schema: the versions of the schema, which schema changes move on. access: the roles and rights.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        authorizer: Authorizer,
        capture: ChangeCapture,
        schema: SchemaVersions,
        access: StoredAccess,
        *,
        checks_definitions: bool = True,
    ) -> None:
        self._connection = connection
        self._authorizer = authorizer
        self._capture = capture
        self._schema_statements = SchemaStatements(connection, authorizer, capture, schema, access, checks_definitions=checks_definitions)
        self._role_statements = RoleStatements(access, partial(relations_of, connection))
        self._notify_statements = NotifyStatements(capture)
        self._schema_statements.reload()
        # A cursor that exists costs half of what a new one does.
        self._savepoints, self._statement = connection.cursor(), connection.cursor()

    def save(self) -> None:
        """Begin the savepoint of a change."""
        self._savepoints.execute("savepoint triplicate_change")

    def keep(self) -> None:
        """Release the savepoint: the change stays."""
        self._savepoints.execute("release triplicate_change")

    def undo(self) -> None:
        """Roll back to the savepoint and release it."""
        self._connection.execute("rollback to triplicate_change; release triplicate_change")

    def reload_schema(self) -> None:
        """Have the capture see the schema as it is now."""
        self._schema_statements.reload()

    def run(self, prepared: Prepared, parameters: Sequence[Value], role: str | None = None) -> StatementOutcome:
        """Run a changing statement and capture its changes. The caller undoes them on an error.

        Args:
            role: runs it; None for the administrator.

        Raises:
            SqlError, apsw.Error, UnicodeError, OverflowError, TypeError, ValueError: it has failed, or a row may not be stored.
        """
        if prepared.kind is StatementKind.SCHEMA:
            outcome = self._run_schema(prepared, parameters, role)
        elif isinstance(prepared.command, Notification):
            self._notify_statements.run(prepared.command)
            outcome = StatementOutcome([], 0)
        else:
            outcome = self._run_change(prepared, parameters)
        self._capture.end_statement()
        if self._capture.poison is not None:
            raise self._capture.poison
        return outcome

    def run_each(self, sql: str, rows: Iterable[Sequence[Value]], counts: list[int]) -> None:
        """Run one change for many rows of parameters, see `WriterConnection.run_many`. Raises as `run`."""
        capture, changes, authorizer = self._capture, self._connection.changes, self._authorizer
        is_upsert = capture.is_upsert

        def accepted_rows() -> Iterator[Sequence[Value]]:
            """The rows, as long as the capture accepts what they change: its error is the one of the row before."""
            for row in rows:
                if is_upsert:
                    capture.prepare(sql)  # Another run may change the rows that this one stores.
                yield row
                if capture.poison is not None:
                    raise capture.poison
                counts.append(changes())

        authorizer.begin(StatementKind.WRITE)
        try:
            self._connection.executemany(sql, accepted_rows())
        except apsw.Error as error:
            if authorizer.refusal is None:
                raise
            raise authorizer.refusal from error
        finally:
            authorizer.end()
        if capture.unknown is not None:
            raise SqlError("XX000", f"a change to the unknown table {capture.unknown!r}")
        capture.end_statement()
        if capture.poison is not None:
            raise capture.poison

    def _run_change(self, prepared: Prepared, parameters: Sequence[Value]) -> StatementOutcome:
        authorizer = self._authorizer
        # The last rowid is of any session.
        self._connection.set_last_insert_rowid(prepared.last_row_id)
        authorizer.begin(StatementKind.WRITE)
        try:
            rows = _returned(self._statement.execute(prepared.sql, tuple(parameters)))
        except apsw.Error as error:
            if authorizer.refusal is None:
                raise
            raise authorizer.refusal from error
        finally:
            authorizer.end()
        if self._capture.unknown is not None:
            raise SqlError("XX000", f"a change to the unknown table {self._capture.unknown!r}")
        return StatementOutcome(rows, self._connection.changes(), self._connection.last_insert_rowid())

    def _run_schema(self, prepared: Prepared, parameters: Sequence[Value], role: str | None) -> StatementOutcome:
        if prepared.command is not None and not isinstance(prepared.command, Notification):
            self._role_statements.run(prepared.command, role)
            return StatementOutcome([], 0)

        def fill_table(text: str) -> None:
            self._run_change(replace(prepared, sql=text), parameters)

        self._schema_statements.run(prepared.sql, fill_table, role)
        return StatementOutcome([], 0)


def _returned(cursor: apsw.Cursor) -> list[Row]:
    """The rows of a change. Raises SqlError 54000 if they are too long."""
    rows: list[Row] = []
    size = 0
    for row in cursor:
        size += size_of(row)
        if size <= _RETURNED_BYTES:
            rows.append(row)
    if size > _RETURNED_BYTES:
        raise SqlError("54000", f"the rows of RETURNING have more than {_RETURNED_BYTES} bytes", hint="Change fewer rows at a time.")
    return rows
