"""Which columns of rows are written into which columns of a table. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triplicate.errors import ConfigError
from triplicate.spark.core.database_options import CHANGES, DELETE, INSERT, TABLES, TableWriteOptions

CHANGE_TYPE = "_change_type"
_OF_A_FEED = (CHANGE_TYPE, "_commit_version", "_commit_timestamp", "_seq", "_rowid", "_schema_change")
_BYTEA, _TIMESTAMP, _TIMESTAMPTZ = 17, 1114, 1184
_TAKEN = (
    "void",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "boolean",
    "date",
    "string",
    "binary",
    "timestamp",
    "timestamp_ntz",
)
_WORDS = {_BYTEA: "bytea", _TIMESTAMP: "timestamp", _TIMESTAMPTZ: "timestamptz"}
_ONLY = {"binary": _BYTEA, "timestamp": _TIMESTAMPTZ, "timestamp_ntz": _TIMESTAMP}
"""The types of columns that go into one type of the database. As texts they would be taken for other values of another type."""


def written_columns(
    columns: Sequence[tuple[str, str]], options: TableWriteOptions, table: Mapping[str, int], key: Sequence[str]
) -> tuple[tuple[tuple[int, str], ...], int | None]:
    """For each column that is written its place in the rows and its name in the table, and the place of the column that says what each
    row changes, if there is one.

    Args:
        columns: names and Spark's simple types. table: names and oids of types. key: the primary key.

    Raises:
        ConfigError: a column is missing, twice there, not in the table, or of a type that its column does not take.
    """
    names = [name.lower() for name, _ in columns]
    known = {name.lower(): name for name in table}
    changed_by = names.index(CHANGE_TYPE) if options.action == CHANGES and CHANGE_TYPE in names else None
    if options.action == CHANGES and changed_by is None:
        raise ConfigError(f"{TABLES}: action '{CHANGES}' needs a column '{CHANGE_TYPE}', as a change feed has it")
    if options.action != INSERT and not key:
        raise ConfigError(f"{TABLES}: table {options.table!r} has no primary key, which action '{options.action}' needs")
    found: list[tuple[int, str]] = []
    for place, (name, kind) in enumerate(columns):
        own = known.get(name.lower())
        if options.action == CHANGES and name.lower() in _OF_A_FEED:
            continue
        if names.count(name.lower()) > 1:
            raise ConfigError(f"{TABLES}: there are several columns {name!r}; column names are compared without case")
        if own is None:
            raise ConfigError(f"{TABLES}: table {options.table!r} has no column {name!r}; it has {', '.join(map(repr, table))}")
        if options.action != DELETE or own in key:
            _check_type(name, kind, table[own])
            found.append((place, own))
    missing = [name for name in key if name not in (own for _, own in found)] if options.action != INSERT else []
    if missing:
        raise ConfigError(f"{TABLES}: action '{options.action}' needs column {missing[0]!r} of the primary key ({', '.join(key)})")
    return tuple(found), changed_by


def _check_type(name: str, kind: str, oid: int) -> None:
    plain = "string" if kind.startswith(("string", "char(", "varchar(")) else kind
    if plain not in _TAKEN and not plain.startswith(("decimal(", "time(")):
        raise ConfigError(f"{TABLES}: column {name!r} is {kind}, which no column of a table takes: write to_json({name}), or its parts")
    if plain in _ONLY and oid != _ONLY[plain]:
        raise ConfigError(f"{TABLES}: column {name!r} is {kind}, which goes into a column of type {_WORDS[_ONLY[plain]]} only: cast it")
    if oid == _BYTEA and plain not in ("binary", "void"):
        raise ConfigError(f"{TABLES}: column {name!r} is {kind}, and its column is bytea: cast it to binary")
