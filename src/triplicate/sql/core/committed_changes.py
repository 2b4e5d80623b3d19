"""The changes of committed transactions, as programs that follow a database get them, from the entries of its log. Pure.

A row is known by its primary key, or by its rowid where the table has none. An update and a delete have the row before the change where
the table logs it (``ALTER TABLE … SET (change_images = full)``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from triplicate.errors import FormatError
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.declared_types import Kind, parse_declared
from triplicate.sql.core.records import (
    BatchHeader,
    RowKind,
    RowRun,
    SchemaChange,
    Transaction,
    decode_header,
    decode_transaction,
)
from triplicate.sql.core.table_shape import TableShape
from triplicate.sql.core.transaction_numbers import transaction_id

Wants = Callable[[str, int], bool]
"""Whether changes of a table are wanted, by its name and the version of the schema in which they were made."""
ROWID = "rowid"
"""The name of the key of a row in a table without a primary key."""


class ChangeType(Enum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    SCHEMA = "schema"
    """A statement that changes the schema. `Change.sql` has its text."""


_TYPES = {RowKind.INSERT: ChangeType.INSERT, RowKind.UPDATE: ChangeType.UPDATE, RowKind.DELETE: ChangeType.DELETE}


@dataclass(frozen=True, slots=True)
class CommittedChange:
    """One change of a transaction. Values are as SQLite stores them."""

    seq: int
    """From 0, in the order of the transaction. Changes that were left out count."""
    type: ChangeType
    table: str = ""
    key: Mapping[str, Value] | None = None
    """The primary key by column: of the row before the change, or of the row that was inserted."""
    new: Mapping[str, Value] | None = None
    """The row after an insert or update, by column. Generated columns are left out."""
    old: Mapping[str, Value] | None = None
    """The row before an update or delete, where the table logs it."""
    sql: str = ""
    column_types: Mapping[str, str] | None = None
    """The declared types of the table's columns."""


@dataclass(frozen=True, slots=True)
class CommittedTransaction:
    """One transaction, with all of its changes that are wanted. A transaction of several MiB comes in parts, which follow each other, since
    its changes need not fit into the memory."""

    position: int
    """The position after it, or after its part. A reader that begins there gets what follows."""
    committed_at_us: int
    """When its entry was written, µs since 1970, by the leader's clock."""
    transaction_id: int
    """As ``pg_current_xact_id()`` has shown it."""
    changes: tuple[CommittedChange, ...]
    part: int = 1
    parts: int = 1
    """The number of its parts. It is complete with the part of this number."""


class FeedEntry(NamedTuple):
    """An entry of the log."""

    first_offset: int
    """Of its first record, also where the reader begins within it."""
    begin: int
    """Index of the first record that is wanted."""
    records: Sequence[bytes | None]
    """All of the entry's records, since the version of the schema counts from the first."""
    preamble: bytes | None
    wall_time_us: int


def entry_header(entry: FeedEntry) -> BatchHeader:
    """Raises FormatError: no database wrote the entry, or a later release did."""
    if entry.preamble is None:
        raise FormatError(f"the entry at position {entry.first_offset} was not written by a database")
    return decode_header(entry.preamble)


def transactions_in(entry: FeedEntry, wants: Wants, *, wants_schema: bool) -> Iterator[CommittedTransaction]:
    """The transactions of an entry that have wanted changes.

    Args:
        wants_schema: whether changes of the schema are wanted.

    Raises:
        FormatError: as `entry_header`.
    """
    header = entry_header(entry)
    version = header.schema_version_before
    changes_schema = header.schema_version_after != version
    if not changes_schema and not any(wants(shape.name, version) for shape in header.tables):
        return
    for slot in range(0 if changes_schema else entry.begin, len(entry.records)):
        record = entry.records[slot]
        if record is None:
            raise FormatError(f"the record at position {entry.first_offset + slot} was not written by a database")
        transaction = decode_transaction(record, header.tables)
        changes, version = _changes_of(transaction, version, wants, wants_schema=wants_schema)
        if slot >= entry.begin and changes:
            number = transaction_id(header.epoch, transaction.number)
            position, part = entry.first_offset + slot + 1, transaction.part
            yield CommittedTransaction(position, entry.wall_time_us, number, tuple(changes), part.number, part.of)


def _changes_of(transaction: Transaction, version: int, wants: Wants, *, wants_schema: bool) -> tuple[list[CommittedChange], int]:
    """(the wanted changes, the version of the schema after the transaction)."""
    changes: list[CommittedChange] = []
    seq = transaction.part.changes_before
    for operation in transaction.operations:
        if isinstance(operation, SchemaChange):
            version += 1
            if wants_schema:
                changes.append(CommittedChange(seq, ChangeType.SCHEMA, sql=operation.sql))
            seq += 1
        elif isinstance(operation, RowRun):
            if wants(operation.table.name, version):
                changes += _changes_of_run(operation, seq)
            seq += operation.count
    return changes, version


def _changes_of_run(run: RowRun, first: int) -> Iterator[CommittedChange]:
    shape, kind = run.table, _TYPES[run.kind]
    types = dict(zip(shape.columns, shape.types, strict=True))
    for index in range(run.count):
        new = None if run.new is None else _row(shape, run.new, index)
        old = None if run.old is None else _row(shape, run.old, index)
        yield CommittedChange(first + index, kind, shape.name, _key(run, index, new), new, old, column_types=types)


def _row(shape: TableShape, columns: Sequence[Sequence[Value]], index: int) -> dict[str, Value]:
    return {name: column[index] for name, column in zip(shape.columns, columns, strict=True)}


def _key(run: RowRun, index: int, new: Mapping[str, Value] | None) -> dict[str, Value]:
    shape = run.table
    names = [shape.columns[number] for number in shape.key]
    if run.keys is not None:
        return {name: column[index] for name, column in zip(names, run.keys, strict=True)}
    if names and new is not None and (run.kind is RowKind.INSERT or shape.rowid_column < 0):
        return {name: new[name] for name in names}  # An update that does not change the key has no old one.
    name = shape.columns[shape.rowid_column] if shape.rowid_column >= 0 else ROWID
    return {name: run.rowids[index] if run.rowids is not None else None}


def row_as_json(row: Mapping[str, Value] | None, types: Mapping[str, str] | None) -> str | None:
    """A row or key as a JSON object: booleans by the declared type, bytes as ``\\x…``, as PostgreSQL writes them."""
    if row is None:
        return None
    shown = {name: _json_value(value, (types or {}).get(name, "")) for name, value in row.items()}
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def _json_value(value: Value, declared: str) -> Any:
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value in (0, 1) and isinstance(value, int) and parse_declared(declared).kind is Kind.BOOL:
        return bool(value)
    return value
