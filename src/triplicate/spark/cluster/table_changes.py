"""Changes of a table on the leader of its database: a batch of rows in one transaction, and each batch of an application once.

The table `spark_batches` of the database has the last batch of each application and table. The transaction of a batch changes its row
first. So a batch that is repeated, also by a driver that was taken for dead, finds its number there and changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from triplicate.errors import ConfigError, EnvironmentFault, OutcomeUnknown, SqlError
from triplicate.spark.cluster import database_tables
from triplicate.spark.cluster.table_content import quoted
from triplicate.spark.core.database_options import INSERT, TABLES, TableWriteOptions

COMMIT_LIMIT_S = 60.0
"""How long a commit waits for a leader, and repeats a transaction whose connection or leader was lost."""
PAUSE_S = 0.5
BATCHES = "spark_batches"
DEFINITION = (
    f"CREATE TABLE IF NOT EXISTS {BATCHES} (application text NOT NULL, target text NOT NULL, batch bigint NOT NULL, "
    "key_columns text NOT NULL, written_at timestamptz NOT NULL, PRIMARY KEY (application, target))"
)
_MARK = (
    f"INSERT INTO {BATCHES} VALUES (%s, %s, %s, %s, now()) ON CONFLICT (application, target) DO UPDATE "
    "SET batch = excluded.batch, key_columns = excluded.key_columns, written_at = excluded.written_at "
    f"WHERE {BATCHES}.batch < excluded.batch"
)
_LAST = f"SELECT batch, key_columns FROM {BATCHES} WHERE application = %s AND target = %s"
_KEY = """
SELECT k.column_name FROM information_schema.table_constraints t, information_schema.key_column_usage k
WHERE t.constraint_type = 'PRIMARY KEY' AND t.table_name = %s AND k.table_name = t.table_name AND k.constraint_name = t.constraint_name
ORDER BY k.ordinal_position
"""
_NAME = "SELECT name FROM pragma_table_list(%s) WHERE schema = 'main' AND type = 'table'"
_REPEATED = ("08", "25006", "40001", "57P")
"""Begins of SQLSTATEs after which the same transaction may succeed, perhaps on another leader."""

Changes = Callable[[], Iterable[tuple[str, Iterator[bytes]]]]
"""For each COPY its statement and its data."""


@dataclass(frozen=True, slots=True)
class TargetTable:
    """A table that is written.

    Args:
        name: as the database has it. columns: names, and oids of their types. key: the columns of the primary key.
    """

    name: str
    columns: dict[str, int]
    key: tuple[str, ...]


@contextmanager
def leader(options: TableWriteOptions) -> Iterator[psycopg.Connection[Any]]:
    """A connection to the leader. Raises as `database_tables.leader_connection`; SqlError: the leader refuses a statement."""
    with database_tables.leader_connection(options.metadata_uri, options.database) as connection:
        try:
            yield connection
        except psycopg.Error as error:
            raise refusal(options, error) from error


def refusal(options: TableWriteOptions, error: psycopg.Error) -> SqlError:
    """The error of a statement, with what it says about the row."""
    found = error.diag
    parts = [found.message_primary or str(error).strip(), found.message_detail, found.context, found.message_hint]
    return SqlError(error.sqlstate or "08006", f"{TABLES}: table {options.table!r}: {'; '.join(part for part in parts if part)}")


def target_of(connection: psycopg.Connection[Any], options: TableWriteOptions) -> TargetTable:
    """The table as it is. Raises ConfigError: there is none of this name, or it is a view."""
    found = connection.execute(_NAME, (options.table,)).fetchone()
    if found is None:
        raise ConfigError(f"{TABLES}: database {options.database!r} has no table {options.table!r}")
    name = str(found[0])
    described = connection.execute(f"SELECT * FROM {quoted(name)} LIMIT 0").description or ()
    return TargetTable(name, {each.name: each.type_code for each in described}, _key_of(connection, name))


def _key_of(connection: psycopg.Connection[Any], table: str) -> tuple[str, ...]:
    return tuple(str(column) for (column,) in connection.execute(_KEY, (table,)).fetchall())


def copy_statement(table: str, columns: Sequence[str], action: str) -> str:
    """The COPY that makes a change for each row of CSV."""
    option = "" if action == INSERT else f", ACTION {action}"
    return f"COPY {quoted(table)} ({', '.join(map(quoted, columns))}) FROM STDIN WITH (FORMAT csv{option})"


def is_written(connection: psycopg.Connection[Any], options: TableWriteOptions, target: TargetTable) -> bool:
    """Whether the batch of the options is in the table. Raises ConfigError: the table's key has changed since the application's last."""
    try:
        last = connection.execute(_LAST, (options.application, target.name)).fetchone()
    except psycopg.errors.UndefinedTable:
        return False
    if last is None:
        return False
    _check_last(options, target, last)
    return options.batch is not None and int(last[0]) >= options.batch


def _check_last(options: TableWriteOptions, target: TargetTable, last: Sequence[Any]) -> None:
    if options.action != INSERT and last[1]:
        _check_key(target.name, str(last[1]), target.key, f"when batch {last[0]} was written")


def _check_key(table: str, before: str, now: Sequence[str], when: str) -> None:
    if before != ", ".join(now):
        raise ConfigError(
            f"{TABLES}: the primary key of table {table!r} was ({before}) {when}, and is ({', '.join(now)}): rows would be changed by "
            "another key. Nothing was written; go on with a new txnAppId"
        )


def try_out(connection: psycopg.Connection[Any], options: TableWriteOptions, copies: Sequence[str], *, overwrite: bool) -> None:
    """Make the changes without a row, and undo them: so rights, columns and types are checked before a task runs."""
    connection.execute("BEGIN")
    try:
        if overwrite:
            connection.execute(f"DELETE FROM {quoted(options.table)} WHERE false")
        for statement in copies:
            with connection.cursor().copy(statement):
                pass
    finally:
        if not connection.broken:
            connection.execute("ROLLBACK")


def write_batch(
    options: TableWriteOptions, target: TargetTable, application: str | None, batch: int | None, changes: Changes, *, overwrite: bool
) -> bool:
    """Make all changes in one transaction. It is repeated if its leader is lost. False: the table has the batch, and nothing was changed.

    Args:
        changes: called once for each attempt.

    Raises:
        SqlError: the database refuses a change. ConfigError: the table's key has changed. EnvironmentFault: no node leads the database.
        OutcomeUnknown: the answer to COMMIT was lost, and `application` is None.
    """
    deadline = time.monotonic() + COMMIT_LIMIT_S
    while True:
        attempt = _BatchAttempt(options, target, application, batch)
        try:
            with database_tables.leader_connection(options.metadata_uri, options.database) as connection:
                return attempt.run(connection, changes, overwrite=overwrite)
        except EnvironmentFault:
            if time.monotonic() >= deadline:
                raise
        except psycopg.Error as error:
            state = error.sqlstate or "08006"
            if attempt.is_committing and application is None and state.startswith("08"):
                raise OutcomeUnknown(
                    f"{TABLES}: table {options.table!r}: the connection to the leader broke during COMMIT: {str(error).strip()}. Look at "
                    "the table; with txnAppId and txnVersion the write would be repeated without harm"
                ) from error
            if not state.startswith(_REPEATED) or time.monotonic() >= deadline:
                raise refusal(options, error) from error
        time.sleep(PAUSE_S)


class _BatchAttempt:
    """One attempt to make a batch's transaction.

    Attributes:
        is_committing: whether COMMIT was sent.
    """

    def __init__(self, options: TableWriteOptions, target: TargetTable, application: str | None, batch: int | None) -> None:
        self.is_committing = False
        self._options = options
        self._target = target
        self._application = application
        self._batch = batch

    def run(self, connection: psycopg.Connection[Any], changes: Changes, *, overwrite: bool) -> bool:
        """See `write_batch`. A connection that is closed by an error ends the transaction."""
        target = self._target
        if self._application is not None:
            self._define(connection)
        # It reads before it writes, and waits for the writer instead of failing when others write.
        connection.execute("BEGIN IMMEDIATE")
        if not self._mark(connection):
            connection.execute("ROLLBACK")
            return False
        if overwrite:
            connection.execute(f"DELETE FROM {quoted(target.name)}")
        for statement, data in changes():
            with closing(connection.cursor()) as cursor, cursor.copy(statement) as copy:
                for part in data:
                    copy.write(part)
        if self._options.action != INSERT:
            _check_key(target.name, ", ".join(target.key), _key_of(connection, target.name), "when the write began")
        self.is_committing = True
        connection.execute("COMMIT")
        return True

    def _define(self, connection: psycopg.Connection[Any]) -> None:
        try:
            connection.execute(f"SELECT 1 FROM {BATCHES} LIMIT 0")
        except psycopg.errors.UndefinedTable:
            try:
                connection.execute(DEFINITION)
            except psycopg.errors.InsufficientPrivilege as error:
                raise ConfigError(
                    f"{TABLES}: to write each batch once, the database needs a table that the role may not create. Its owner does it: "
                    f"{DEFINITION}; GRANT SELECT, INSERT, UPDATE ON {BATCHES} TO …"
                ) from error

    def _mark(self, connection: psycopg.Connection[Any]) -> bool:
        """Note the batch. False: it, or a later one, is noted."""
        if self._application is None:
            return True
        key = "" if self._options.action == INSERT else ", ".join(self._target.key)
        last = connection.execute(_LAST, (self._application, self._target.name)).fetchone()
        if last is not None and int(last[0]) < (self._batch or 0):
            _check_last(self._options, self._target, last)
        return connection.execute(_MARK, (self._application, self._target.name, self._batch or 0, key)).rowcount > 0
