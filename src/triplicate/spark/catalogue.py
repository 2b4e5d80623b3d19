"""What the change feed asks about databases: where a database's log is, and which columns a table has."""

from __future__ import annotations

import psycopg

from triplicate.errors import ConfigError, EnvironmentFault
from triplicate.spark import connections
from triplicate.sql import DatabaseInfo, database_info

CONNECT_TIMEOUT_S = 5
_COLUMNS = "SELECT name, type FROM pragma_table_info(%s) ORDER BY cid"


def database_log(metadata_uri: str, database: str) -> str:
    """The log that holds a database's changes.

    Raises:
        UsageError: there is no database of this name.
    """
    return _info(metadata_uri, database).log


def table_columns(metadata_uri: str, database: str, table: str) -> list[tuple[str, str]]:
    """Name and declared type of a table's columns, in order; generated columns are left out, as they are in the log.

    Any node of the database is asked, over the PostgreSQL protocol: a copy that lags knows nearly as much.

    Raises:
        ConfigError: no such table. EnvironmentFault: no node answers.
    """
    failures: list[str] = []
    for node in _info(metadata_uri, database).nodes:
        host, _, port = node.address.rpartition(":")
        try:
            with psycopg.connect(
                host=host,
                port=port,
                dbname=database,
                user="spark",
                autocommit=True,
                connect_timeout=CONNECT_TIMEOUT_S,
                application_name="triplicate-changes",
            ) as connection:
                rows = connection.execute(_COLUMNS, (table,)).fetchall()
        except psycopg.Error as error:
            failures.append(f"{node.address}: {str(error).strip()}")
            continue
        if rows:
            return [(str(name), str(declared or "")) for name, declared in rows]
        failures.append(f"{node.address}: there is no table {table!r}")
    if any(failure.endswith(f"there is no table {table!r}") for failure in failures):
        raise ConfigError(f"triplicate-changes: database {database!r} has no table {table!r}")
    reasons = "; ".join(failures) or "none runs"
    raise EnvironmentFault(
        f"triplicate-changes: no node of database {database!r} tells the columns of table {table!r} ({reasons}). "
        "Start one, or give a schema of your own with .schema(…)"
    )


def _info(metadata_uri: str, database: str) -> DatabaseInfo:
    client = connections.client(metadata_uri)
    return client.loop.call(database_info(client.client, database))
