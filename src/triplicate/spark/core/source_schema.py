"""The columns of the sources. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Column = tuple[str, str, bool]
"""Name, type in Spark's DDL, and whether the column may be null."""

# TIMESTAMP depends on `spark.sql.timestampType` and may have no time zone.
LOG_COLUMNS: tuple[Column, ...] = (
    ("log", "STRING", False),
    ("offset", "LONG", False),
    ("timestamp", "TIMESTAMP_LTZ", True),
    ("key", "BINARY", True),
    ("value", "BINARY", True),
)
HEADERS_COLUMN: Column = ("headers", "ARRAY<STRUCT<key: STRING, value: BINARY>>", True)
METADATA_COLUMNS: tuple[Column, ...] = (("_ledger_id", "LONG", True), ("_entry_id", "LONG", True))
LEDGER_COLUMNS: tuple[Column, ...] = (
    ("ledger_id", "LONG", False),
    ("entry_id", "LONG", False),
    ("value", "BINARY", True),
    ("length", "LONG", False),
)
CHANGE_COLUMNS = "_change_type STRING NOT NULL, _commit_version LONG NOT NULL, _commit_timestamp TIMESTAMP_LTZ, _seq INT NOT NULL"
VERSIONED = "_commit_version LONG NOT NULL"
VERSION_COMMENT = "columns as of schema version "
ROWID_COLUMN = "_rowid LONG"
EVENT_COLUMN = "_schema_change STRING"


def log_columns(*, include_headers: bool, include_metadata: bool, names: Sequence[str] = ()) -> tuple[Column, ...]:
    """The columns of a read of logs.

    Args:
        names: those of the columns, if not all are read.
    """
    if names:
        known = {column[0]: column for column in (*LOG_COLUMNS, HEADERS_COLUMN, *METADATA_COLUMNS)}
        return tuple(known[name] for name in names)
    return (*LOG_COLUMNS, *((HEADERS_COLUMN,) if include_headers else ()), *(METADATA_COLUMNS if include_metadata else ()))


def ddl(columns: Sequence[Column]) -> str:
    """The columns in Spark's DDL."""
    return ", ".join(f"{name} {kind}" if nullable else f"{name} {kind} NOT NULL" for name, kind, nullable in columns)


def struct(columns: Sequence[Column]) -> StructType:
    """The columns as a Spark `StructType`, without a session."""
    from pyspark.sql import types

    header = types.StructType([types.StructField("key", types.StringType()), types.StructField("value", types.BinaryType())])
    kinds: dict[str, types.DataType] = {
        "STRING": types.StringType(),
        "LONG": types.LongType(),
        "TIMESTAMP_LTZ": types.TimestampType(),
        "BINARY": types.BinaryType(),
        HEADERS_COLUMN[1]: types.ArrayType(header),
    }
    return types.StructType([types.StructField(name, kinds[kind], nullable) for name, kind, nullable in columns])


def quoted(name: str) -> str:
    """A quoted column name for DDL."""
    return "`" + name.replace("`", "``") + "`"


def changes_schema(columns: Sequence[tuple[str, str]], *, version: int | None = None, rowid: bool = False, events: bool = False) -> str:
    """Columns of a table's change feed: (name, Spark's type) of the table's, then those of the change.

    Args:
        version: of the database's schema in which the table has these columns; it travels with them as a column's comment.
        rowid: adds the column of rowids. events: adds the column that holds the text of a schema change.
    """
    own = [f"{quoted(name)} {kind}" for name, kind in columns]
    of_change = (
        CHANGE_COLUMNS if version is None else CHANGE_COLUMNS.replace(VERSIONED, f"{VERSIONED} COMMENT '{VERSION_COMMENT}{version}'")
    )
    return ", ".join([*own, of_change, *([ROWID_COLUMN] if rowid else []), *([EVENT_COLUMN] if events else [])])


def schema_version(comments: Iterable[str | None]) -> int | None:
    """The version in the columns' comments, or None for a user's own columns."""
    for comment in comments:
        if comment is not None and comment.startswith(VERSION_COMMENT):
            return int(comment.removeprefix(VERSION_COMMENT))
    return None
