"""Transactions as a database writes them into its log, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triplicate.sql import BatchHeader, RowKind, RowRun, SchemaChange, TableShape, Transaction
from triplicate.sql.core.records import Operation, TableDictionary, encode_header, encode_transaction

PEOPLE = TableShape("people", ("id", "name", "score"), ("INTEGER", "TEXT", "REAL"), key=(0,), rowid_column=0)
PLACES = TableShape("Places", ("code", "open"), ("TEXT", "BOOLEAN"), key=(0,), without_rowid=True)


def inserted(table: TableShape, *rows: tuple[Any, ...], rowids: Sequence[int] | None = None) -> RowRun:
    return RowRun(table, RowKind.INSERT, len(rows), rowids=rowids, new=_columns(rows))


def updated(
    table: TableShape, *rows: tuple[Any, ...], rowids: Sequence[int] | None = None, keys: Any = None, old: Sequence[tuple[Any, ...]] = ()
) -> RowRun:
    return RowRun(table, RowKind.UPDATE, len(rows), rowids=rowids, keys=keys, new=_columns(rows), old=_columns(old) if old else None)


def deleted(
    table: TableShape, count: int, rowids: Sequence[int] | None = None, keys: Any = None, old: Sequence[tuple[Any, ...]] = ()
) -> RowRun:
    return RowRun(table, RowKind.DELETE, count, rowids=rowids, keys=keys, old=_columns(old) if old else None)


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True))


def batch_of(*transactions: Sequence[Operation], schema: int = 1) -> tuple[bytes, list[bytes]]:
    """One entry of the log: its preamble and its records, each a transaction. `schema` is the schema's version before it."""
    dictionary = TableDictionary()
    records = [encode_transaction(Transaction(number, list(operations)), dictionary) for number, operations in enumerate(transactions, 1)]
    after = schema + sum(isinstance(operation, SchemaChange) for operations in transactions for operation in operations)
    return encode_header(BatchHeader(bytes(16), 1, 1, schema, after, bytes(16), bytes(16), tuple(dictionary.shapes))), records
