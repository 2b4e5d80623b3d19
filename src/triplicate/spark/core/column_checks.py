"""The columns that the sources read and write, and their types. Pure, and quick to load, because planning needs only this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from triplicate.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

READABLE = {
    "log": ("string",),
    "offset": ("bigint",),
    "timestamp": ("timestamp",),
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "_ledger_id": ("bigint",),
    "_entry_id": ("bigint",),
}
READABLE_OF_LEDGERS = {"ledger_id": ("bigint",), "entry_id": ("bigint",), "value": ("binary", "string"), "length": ("bigint",)}
"""Columns that a user's schema may request, and their types."""
_WRITABLE = {
    "value": ("binary", "string"),
    "key": ("binary", "string"),
    "timestamp": ("timestamp",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
_ROUTE = {"log": ("string",)}
"""The column that names the log of each row, outside tables."""
_MAY_BE_NULL = ("key", "value", "headers")
PLACES = {"log": ("string",), "offset": ("bigint",), "_ledger_id": ("bigint",), "_entry_id": ("bigint",)}
"""Columns of a table of this source that the log fills. An INSERT omits them, and Spark writes nulls for them."""


def plain(schema: StructType) -> StructType:
    """A schema without metadata, with char and varchar as strings, as Arrow supports it."""
    from pyspark.sql import types

    fields = [
        types.StructField(field.name, types.StringType() if _is_text(field.dataType.simpleString()) else field.dataType, field.nullable)
        for field in schema.fields
    ]
    return types.StructType(fields)


def _is_text(kind: str) -> bool:
    return kind.startswith(("string", "char(", "varchar("))


def _known_as(kind: str) -> str:
    """The type used for lookups: texts of any length and collation are strings."""
    return "string" if _is_text(kind) else kind


def check_nullable(schema: StructType) -> None:
    """Refuse a schema in which a column of records that may be null is NOT NULL. Spark leaves tests for null out of a query on
    such a column.

    Raises:
        ConfigError.
    """
    for field in schema.fields:
        if not field.nullable and field.name.lower() in _MAY_BE_NULL:
            raise ConfigError(f"triplicate: column {field.name!r} may be null in a record, and the schema says NOT NULL: leave that out")


def check_readable(columns: Sequence[tuple[str, str]], known: Mapping[str, tuple[str, ...]]) -> None:
    """Args: columns: (name, Spark's simple type) that a reader must deliver; names are compared without case. known: `READABLE` or
    `READABLE_OF_LEDGERS`.

    Raises:
        ConfigError: a column is unknown, named twice, or of another type.
    """
    _check_unique([name for name, _ in columns])
    for name, kind in columns:
        kinds = known.get(name.lower())
        if kinds is None:
            raise ConfigError(f"triplicate: there is no column {name!r}; there are {', '.join(known)}")
        if _known_as(kind) not in kinds:
            raise ConfigError(f"triplicate: column {name!r} is {' or '.join(kinds)}, not {kind}; cast it after reading")


def _check_unique(names: Sequence[str]) -> None:
    lower = [name.lower() for name in names]
    for name in names:
        if lower.count(name.lower()) > 1:
            raise ConfigError(f"triplicate: there are several columns {name!r}; column names are compared without case")


def check_writable(columns: Sequence[tuple[str, str]], *, into_table: bool = False) -> None:
    """Args: columns: (name, Spark's simple type) of the rows to be written; names are compared without case. into_table: the rows have all
    columns of a table, also those that the log fills.

    Raises:
        ConfigError: a column is missing, unknown, named twice, or of a type that cannot be stored.
    """
    names = [name for name, _ in columns]
    known = {**_WRITABLE, **(PLACES if into_table else _ROUTE)}
    if "value" not in (name.lower() for name in names):
        raise ConfigError(f"triplicate: a column 'value' (binary or string) is needed to write; there are {', '.join(names) or 'none'}")
    for name, kind in columns:
        kinds = known.get(name.lower())
        if kinds is None:
            hint = "; the option or a column 'log' names the log" if name.lower() == "topic" else ""
            raise ConfigError(f"triplicate: column {name!r} cannot be written; columns of a record are {', '.join(_WRITABLE)}{hint}")
        if _known_as(kind) not in kinds:
            # A timestamp without time zone is a moment only in the session's zone, which is not known here.
            raise ConfigError(
                f"triplicate: column {name!r} must be {' or '.join(kinds)}, not {kind}; cast it before it is written, as in "
                f"CAST({name} AS {kinds[0].upper()})"
            )
    _check_unique(names)
