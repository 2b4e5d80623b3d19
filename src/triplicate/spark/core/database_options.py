"""The options of the source and sink for tables of a database. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from triplicate.errors import ConfigError
from triplicate.spark.core.given_options import Options

TABLES = "triplicate-table"
"""The format's name."""
ROWS_PER_PARTITION = 250_000
INSERT, UPSERT, DELETE, CHANGES = "insert", "upsert", "delete", "changes"
"""The change that a row makes: of the whole write, or each by its column `_change_type`."""

READ_OPTIONS = (
    "metadataServiceUri",
    "database",
    "table",
    "query",
    "columns",
    "versionAsOf",
    "timestampAsOf",
    "rowsPerPartition",
    "minPartitions",
    "partitionColumn",
    "numPartitions",
)
WRITE_OPTIONS = ("metadataServiceUri", "database", "table", "ledgerPassword", "keysFile", "action", "txnAppId", "txnVersion")


@dataclass(frozen=True, slots=True)
class TableReadOptions:
    """A read of a table or a query.

    Args:
        table, query: one of them is not empty. columns: names, all if empty.
        point: of the database's log, as ``triplicate.as_of`` takes it; empty: the present.
        partition_column: of a query, whose values are cut into `partitions` ranges; empty: one task.
    """

    metadata_uri: str
    database: str
    table: str
    query: str
    columns: tuple[str, ...]
    point: str
    rows_per_partition: int
    min_partitions: int
    partition_column: str
    partitions: int


@dataclass(frozen=True, slots=True)
class TableWriteOptions:
    """A write into a table.

    Args:
        application, batch: for exactly once, None if that was not requested; a stream has the numbers of its batches.
    """

    metadata_uri: str
    ledger_password: str
    keys_file: str
    database: str
    table: str
    action: str
    application: str | None
    batch: int | None


def table_read_options(given: Mapping[str, str]) -> TableReadOptions:
    """Raises ConfigError."""
    options = Options(TABLES, given, READ_OPTIONS)
    table, query = options.text("table") or "", (options.text("query") or "").rstrip("; \n")
    if bool(table) == bool(query):
        raise ConfigError(f"{TABLES}: give 'table' or 'query'{', not both' if table else ''}")
    names = tuple(name.strip() for name in (options.text("columns") or "").split(",")) if options.text("columns") else ()
    if query and names:
        raise ConfigError(f"{TABLES}: option 'columns' is for a table; a query names its columns itself")
    column, partitions = options.text("partitionColumn") or "", options.limit("numPartitions")
    if bool(column) != bool(partitions) or (column and table):
        raise ConfigError(
            f"{TABLES}: 'partitionColumn' and 'numPartitions' go together, for a query; 'rowsPerPartition' and 'minPartitions' cut a table"
        )
    return TableReadOptions(
        options.required("metadataServiceUri"),
        options.required("database"),
        table,
        query,
        names,
        _point(options),
        options.limit("rowsPerPartition") or ROWS_PER_PARTITION,
        options.limit("minPartitions") or 1,
        column,
        partitions or 1,
    )


def _point(options: Options) -> str:
    version, time = options.integer("versionAsOf", None), options.time_text("timestampAsOf")
    if version is not None and time is not None:
        raise ConfigError(f"{TABLES}: give 'versionAsOf' or 'timestampAsOf', not both")
    if version is not None:
        return f"position {version + 1}"
    return "" if time is None else f"time {time.astimezone(dt.UTC).isoformat()}"


def table_write_options(given: Mapping[str, str], *, streaming: bool) -> TableWriteOptions:
    """Raises ConfigError."""
    options = Options(TABLES, given, WRITE_OPTIONS)
    application, batch = options.text("txnAppId"), options.integer("txnVersion", None)
    if streaming and batch is not None:
        raise ConfigError(f"{TABLES}: option 'txnVersion' is for batch writes; a stream has the numbers of its batches")
    if not streaming and (application is None) != (batch is None):
        raise ConfigError(f"{TABLES}: 'txnAppId' and 'txnVersion' go together: the writer's name and the number of its batch")
    return TableWriteOptions(
        options.required("metadataServiceUri"),
        options.text("ledgerPassword") or "",
        options.text("keysFile") or "",
        options.required("database"),
        options.required("table"),
        options.word("action", INSERT, UPSERT, DELETE, CHANGES) or INSERT,
        application,
        batch,
    )
