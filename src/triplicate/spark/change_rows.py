"""From a database's log entries to rows of a table's change feed, column by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from triplicate.errors import ConfigError
from triplicate.spark.arrow import BATCH_ROWS, EntryRange
from triplicate.sql import RowKind, RowRun, TableShape, decode_header, decode_transaction

INSERT, PREIMAGE, POSTIMAGE, DELETE = "insert", "update_preimage", "update_postimage", "delete"


class ChangeBatches:
    """Gathers a table's changes and hands them out in record batches.

    Args:
        table: its name; SQLite compares names without regard to case.
        schema: the columns wanted, those of the change among them.
    """

    def __init__(self, table: str, schema: pa.Schema) -> None:
        self._table = table.lower()
        self._schema = schema
        self._columns: dict[str, list[Any]] = {field.name: [] for field in schema}
        self._rows = 0

    def add(self, part: EntryRange) -> Iterator[pa.RecordBatch]:
        """Take the transactions `low` to `high` of one entry."""
        if part.view.preamble is None:
            raise ConfigError("triplicate-changes: the log holds an entry that no database wrote")
        tables = decode_header(bytes(part.view.preamble)).tables
        if not any(shape.name.lower() == self._table for shape in tables):
            return
        time_us = part.view.header.wall_time_us
        for slot, record in enumerate(part.view.values(part.low, part.high), start=part.low):
            transaction = decode_transaction(record or b"", tables)
            sequence = 0
            for operation in transaction.operations:
                if isinstance(operation, RowRun) and operation.table.name.lower() == self._table:
                    sequence = self._take(operation, part.first_offset + slot, time_us, sequence)
            if self._rows >= BATCH_ROWS:
                yield from self.finish()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What is left."""
        if not self._rows:
            return
        arrays = [_array(field, self._columns[field.name]) for field in self._schema]
        self._columns = {field.name: [] for field in self._schema}
        self._rows = 0
        yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _take(self, run: RowRun, version: int, time_us: int, sequence: int) -> int:
        images: list[tuple[str, Sequence[Sequence[Any]]]] = []
        match run.kind:
            case RowKind.INSERT:
                images = [(INSERT, run.new or ())]
            case RowKind.UPDATE:
                images = ([] if run.old is None else [(PREIMAGE, run.old)]) + [(POSTIMAGE, run.new or ())]
            case RowKind.DELETE:
                images = [(DELETE, run.old if run.old is not None else _key_image(run))]
        for kind, image in images:
            self._append(run.table, image, run.count)
            # A row's two images share its place in the order.
            own = {
                "_change_type": [kind] * run.count,
                "_commit_version": [version] * run.count,
                "_commit_timestamp": [time_us] * run.count,
                "_seq": list(range(sequence, sequence + run.count)),
            }
            for name, values in own.items():
                if name in self._columns:
                    self._columns[name] += values
            self._rows += run.count
        return sequence + run.count

    def _append(self, table: TableShape, image: Sequence[Sequence[Any]], count: int) -> None:
        places = {name.lower(): index for index, name in enumerate(table.columns)}
        for name, column in self._columns.items():
            if name.startswith("_") and name in ("_change_type", "_commit_version", "_commit_timestamp", "_seq"):
                continue
            index = places.get(name.lower())
            # A column added later is not in older changes: it was null then.
            column.extend(image[index] if index is not None else [None] * count)


def _key_image(run: RowRun) -> list[Sequence[Any]]:
    """Of a deleted row only its key is logged: the other columns are null."""
    image: list[Sequence[Any]] = [(None,) * run.count for _ in run.table.columns]
    if run.keys is not None:
        for index, column in zip(run.table.key, run.keys, strict=True):
            image[index] = column
    if run.table.rowid_column >= 0 and run.rowids is not None:
        image[run.table.rowid_column] = run.rowids
    return image


def _array(field: pa.Field, values: list[Any]) -> pa.Array:
    if pa.types.is_timestamp(field.type):
        return pa.array(values, pa.int64()).cast(pa.timestamp("us", tz="UTC")).cast(field.type)
    try:
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([_converted(field, value) for value in values], field.type)


def _converted(field: pa.Field, value: Any) -> Any:
    """SQLite lets a column hold any value: what the declared type can hold is converted, the rest is refused by name."""
    kind = field.type
    if value is None:
        return None
    if pa.types.is_string(kind):
        return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
    if pa.types.is_boolean(kind) and value in (0, 1):
        return bool(value)
    if pa.types.is_floating(kind) and isinstance(value, (int, float)):
        return float(value)
    if pa.types.is_int64(kind) and isinstance(value, float) and value.is_integer():
        return int(value)
    if pa.types.is_binary(kind) and isinstance(value, str):
        return value.encode()
    raise ConfigError(
        f"triplicate-changes: column {field.name} holds {value!r:.60}, which is no {kind}; read it with a schema of your own in which it is a string"
    )
