"""The columns of the sources, as Spark's DDL. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LOG_COLUMNS = "log STRING NOT NULL, offset LONG NOT NULL, timestamp TIMESTAMP, key BINARY, value BINARY"
HEADERS_COLUMN = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
METADATA_COLUMNS = "_ledger_id LONG, _entry_id LONG"
LEDGER_COLUMNS = "ledger_id LONG NOT NULL, entry_id LONG NOT NULL, value BINARY, length LONG NOT NULL"
CHANGE_COLUMNS = "_change_type STRING NOT NULL, _commit_version LONG NOT NULL, _commit_timestamp TIMESTAMP, _seq INT NOT NULL"
VERSIONED = "_commit_version LONG NOT NULL"
VERSION_COMMENT = "columns as of schema version "
ROWID_COLUMN = "_rowid LONG"
EVENT_COLUMN = "_schema_change STRING"

_DECLARED = (
    (("INTERVAL",), "STRING"),
    (("BOOL",), "BOOLEAN"),
    (("INT", "SERIAL"), "LONG"),
    (("CHAR", "CLOB", "TEXT", "JSON", "UUID", "DATE", "TIME"), "STRING"),
    (("BLOB", "BYTEA"), "BINARY"),
    (("REAL", "FLOA", "DOUB"), "DOUBLE"),
)


def log_schema(*, include_headers: bool, include_metadata: bool) -> str:
    """Columns of a read of logs."""
    parts = [LOG_COLUMNS]
    if include_headers:
        parts.append(HEADERS_COLUMN)
    if include_metadata:
        parts.append(METADATA_COLUMNS)
    return ", ".join(parts)


def spark_type(declared: str) -> str:
    """Spark's type for a table column declared so. SQLite lets a column hold any value; one that does not fit fails the read by name.

    Moments stay text, as the database stores them. NUMERIC and columns without a type are text too: nothing is lost.
    """
    upper = declared.upper()
    for words, name in _DECLARED:
        if any(word in upper for word in words):
            return name
    return "STRING"


def quoted(name: str) -> str:
    """A column's name in DDL."""
    return "`" + name.replace("`", "``") + "`"


def changes_schema(columns: Sequence[tuple[str, str]], *, version: int | None = None, rowid: bool = False, events: bool = False) -> str:
    """Columns of a table's change feed: (name, declared type) of the table's, then those of the change.

    Args:
        version: of the database's schema in which the table has these columns; it travels with them as a column's comment.
        rowid: with the rows' own numbers. events: with the text that tells of a schema change.
    """
    own = [f"{quoted(name)} {spark_type(declared)}" for name, declared in columns]
    of_change = (
        CHANGE_COLUMNS if version is None else CHANGE_COLUMNS.replace(VERSIONED, f"{VERSIONED} COMMENT '{VERSION_COMMENT}{version}'")
    )
    return ", ".join([*own, of_change, *([ROWID_COLUMN] if rowid else []), *([EVENT_COLUMN] if events else [])])


def schema_version(comments: Iterable[str | None]) -> int | None:
    """The version among the columns' comments, or None where the columns are a user's own."""
    for comment in comments:
        if comment is not None and comment.startswith(VERSION_COMMENT):
            return int(comment.removeprefix(VERSION_COMMENT))
    return None
