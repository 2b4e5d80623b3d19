"""Databases as the sources use them: their logs, connections to their nodes, and the columns of their tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg

from triplicate.config import DatabaseClientSettings, SecuritySettings, settings_of_environment
from triplicate.errors import ConfigError, EnvironmentFault, NoSuchLog
from triplicate.security import read_secret_file
from triplicate.spark.cluster import connections
from triplicate.sql import DatabaseInfo

CONNECT_TIMEOUT_S = 5
_LEADER = "leader"
DEFAULT_ROLE = "spark"
"""Without authentication any name is accepted."""
# One statement, so that version and columns agree. `hidden` excludes generated columns, which the log excludes, too.
_COLUMNS = """
SELECT (SELECT schema_version FROM triplicate_state), t.type, CAST(t.wr AS INTEGER), x.name, x.type, CAST(x.pk AS INTEGER),
       (SELECT count(*) FROM pragma_index_list(t.name) WHERE origin = 'pk')
FROM pragma_table_list(%s) t, pragma_table_xinfo(t.name) x WHERE t.schema = 'main' AND x.hidden = 0 ORDER BY x.cid
"""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """A table's columns, and their schema version.

    Args:
        columns: name and declared type in order, without generated columns.
        known_by_rowid: whether only the rowid identifies rows, because the table has no INTEGER PRIMARY KEY and is not WITHOUT ROWID. Any
            other key may be null, and is not always logged.
    """

    columns: tuple[tuple[str, str], ...]
    schema_version: int
    known_by_rowid: bool


def database_log(metadata_uri: str, database: str) -> str:
    """The log with a database's changes.

    Raises:
        UsageError: there is no database with this name.
    """
    return _info(metadata_uri, database).log


def check_kept(metadata_uri: str, database: str, log: str) -> None:
    """Check that the database of a log still exists, under any name. The log outlives it for a time without further changes.

    Raises:
        NoSuchLog: the database was dropped.
    """
    if any(dropped.info.log == log for dropped in connections.client(metadata_uri).databases().dropped()):
        raise NoSuchLog(
            f"triplicate-changes: database {database!r} was dropped, and its tables with it: there are no more changes. Until its log is "
            "deleted, it can be restored with triplicate database undelete; a new database of this name needs a new checkpoint"
        )


def table_columns(metadata_uri: str, database: str, table: str) -> TableColumns:
    """The columns of a table, read from any node of the database over the PostgreSQL protocol. A copy that lags returns its version.

    Raises:
        ConfigError: no such table, it has no feed, or a setting of the environment cannot be used. EnvironmentFault: no node answers.
    """
    failures: list[str] = []
    missing = False
    for address, connect in node_connections(metadata_uri, database).items():
        try:
            with connect() as connection:
                rows = connection.execute(_COLUMNS, (table,)).fetchall()
        except psycopg.Error as error:
            failures.append(f"{address}: {str(error).strip()}")
            continue
        if rows:
            return read_columns(table, rows)
        missing = True
    if missing:
        raise ConfigError(f"triplicate-changes: database {database!r} has no table {table!r}; if it was renamed, use its present name")
    reasons = "; ".join(failures) or "none runs"
    raise EnvironmentFault(
        f"triplicate-changes: no node of database {database!r} returned the columns of table {table!r} ({reasons}). "
        "Start one, or give a schema of your own with .schema(…)"
    )


def node_connections(metadata_uri: str, database: str) -> dict[str, Callable[[], psycopg.Connection[Any]]]:
    """For the address of each node of a database, a function that connects to it. The leader is the last.

    Raises:
        UsageError: there is no database with this name. ConfigError: a setting of the environment cannot be used.
    """
    info = _info(metadata_uri, database)
    connect = partial(_connect, _options(info))
    return {node.address: partial(connect, [node.address]) for node in sorted(info.nodes, key=lambda node: node.role == _LEADER)}


def leader_connection(metadata_uri: str, database: str) -> psycopg.Connection[Any]:
    """A connection to the node that leads a database.

    Raises:
        EnvironmentFault: none leads now, or it cannot be reached. UsageError, ConfigError: as `node_connections`.
    """
    info = _info(metadata_uri, database)
    try:
        return _connect({**_options(info), "target_session_attrs": "read-write"}, [node.address for node in info.nodes])
    except psycopg.Error as error:
        raise EnvironmentFault(f"no node that leads database {database!r} can be reached: {str(error).strip()}") from error


def _options(info: DatabaseInfo) -> dict[str, Any]:
    login = _login_options(os.environ) | (_tls_options(os.environ) if info.has_tls else {})
    return {"dbname": info.name, "connect_timeout": CONNECT_TIMEOUT_S, "application_name": "triplicate-spark", **login}


def _connect(options: Mapping[str, Any], addresses: Sequence[str]) -> psycopg.Connection[Any]:
    hosts, ports = zip(*(address.rpartition(":")[::2] for address in addresses), strict=True) if addresses else ((), ())
    return psycopg.connect(host=",".join(hosts), port=",".join(ports), autocommit=True, **options)


def result_columns(metadata_uri: str, database: str, query: str) -> list[tuple[str, tuple[int, int, int]]]:
    """The columns of a query, read from any node of the database: name, and the oid, precision and scale of the type.

    Raises:
        ConfigError: the database refuses the query, or a setting of the environment cannot be used. EnvironmentFault: no node answers.
    """
    failures: list[str] = []
    refused: psycopg.Error | None = None
    for address, connect in node_connections(metadata_uri, database).items():
        try:
            with connect() as connection:
                described = connection.execute(f"SELECT * FROM {subquery(query)} LIMIT 0").description or ()
                return [(each.name, (each.type_code, each.precision or 0, each.scale or 0)) for each in described]
        except psycopg.OperationalError as error:
            failures.append(f"{address}: {str(error).strip()}")
        except psycopg.Error as error:
            refused = error  # A node that lags may not have the table yet.
    if refused is not None:
        raise ConfigError(f"database {database!r} refuses this read: {str(refused).strip()}") from refused
    raise EnvironmentFault(f"no node of database {database!r} can be asked for columns ({'; '.join(failures) or 'none runs'}): start one")


def subquery(query: str) -> str:
    """A query in FROM. It may end in a comment."""
    return f"({query}\n) q"


def acknowledged_position(metadata_uri: str, database: str) -> int:
    """A position of the database's log behind everything that was acknowledged before this call. Raises as `leader_connection`."""
    with leader_connection(metadata_uri, database) as connection:
        ((position,),) = connection.execute("SELECT triplicate_position()").fetchall()
        return int(position)


def is_table(connection: psycopg.Connection[Any], table: str) -> bool:
    """Whether there is a table of this name, and not a view."""
    found = connection.execute("SELECT 1 FROM pragma_table_list(%s) WHERE schema = 'main' AND type = 'table'", (table,))
    return bool(found.fetchall())


def _login_options(environment: Mapping[str, str]) -> dict[str, Any]:
    """Options of libpq: the role, and its password if that is in the settings of section ``database_client``.

    ``PGUSER``, ``PGPASSWORD`` and ``PGPASSFILE`` override the settings, as for every program with libpq.
    """
    settings = settings_of_environment(DatabaseClientSettings, environment)
    role = environment.get("PGUSER") or settings.role or DEFAULT_ROLE
    if role != settings.role or not settings.password_file or {"PGPASSWORD", "PGPASSFILE"} & set(environment):
        return {"user": role}
    return {"user": role, "password": read_secret_file(settings.password_file, "database_client.password_file")}


def _tls_options(environment: Mapping[str, str]) -> dict[str, Any]:
    """Options of libpq for nodes with TLS."""
    ca_file = settings_of_environment(SecuritySettings, environment).ca_file
    return {"sslmode": "verify-full", **({"sslrootcert": ca_file} if ca_file else {})}


def read_columns(table: str, rows: Sequence[tuple[Any, ...]]) -> TableColumns:
    """From the rows of the statement above. Raises ConfigError: it is a view or a virtual table."""
    version, kind, without_rowid = rows[0][:3]
    if kind == "shadow":
        raise ConfigError(f"triplicate-changes: table {table!r} belongs to a virtual table and has no feed")
    if kind != "table":
        raise ConfigError(f"triplicate-changes: {table!r} is a {kind}{'' if kind == 'view' else ' table'}, which has no feed")
    keys = [str(declared or "") for *_, declared, key, _ in rows if key]
    integer_key = len(keys) == 1 and keys[0].upper() == "INTEGER" and not rows[0][6]
    columns = tuple((str(row[3]), str(row[4] or "")) for row in rows)
    return TableColumns(columns, int(version), not without_rowid and not integer_key)


def _info(metadata_uri: str, database: str) -> DatabaseInfo:
    return connections.client(metadata_uri).databases().info(database)
