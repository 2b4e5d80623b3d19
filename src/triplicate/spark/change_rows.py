"""From a database's log entries to rows of a table's change feed, column by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from triplicate.errors import ConfigError
from triplicate.spark.arrow import BATCH_BYTES, BATCH_ROWS, EntryRange
from triplicate.sql import RowKind, RowRun, TableShape, decode_header, decode_transaction

INSERT, PREIMAGE, POSTIMAGE, DELETE = "insert", "update_preimage", "update_postimage", "delete"
CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp", "_seq")

_Image = Sequence[Sequence[Any]]


class ChangeBatches:
    """Gathers a table's changes and hands them out in record batches.

    Args:
        table: its name; SQLite compares names without regard to case.
        schema: the columns wanted, those of the change among them. One that a change's row does not have is null: a column that was
            added later was null then.
    """

    def __init__(self, table: str, schema: pa.Schema) -> None:
        self._table = table.lower()
        self._schema = schema
        self._columns: dict[str, list[Any]] = {field.name: [] for field in schema}
        self._rows = 0
        self._size_bytes = 0

    def add(self, part: EntryRange) -> Iterator[pa.RecordBatch]:
        """Take the transactions `low` to `high` of one entry.

        Raises:
            ConfigError: no database wrote it, or a value does not fit its column's type. FormatError: of a format not known here.
        """
        if part.view.preamble is None:
            raise ConfigError("triplicate-changes: the log holds an entry that no database wrote")
        tables = decode_header(bytes(part.view.preamble)).tables
        if not any(shape.name.lower() == self._table for shape in tables):
            return
        time_us = part.view.header.wall_time_us
        for slot, record in enumerate(part.view.values(part.low, part.high), start=part.low):
            if record is None:
                raise ConfigError("triplicate-changes: the log holds a record that no database wrote")
            rows_before, sequence = self._rows, 0
            for operation in decode_transaction(record, tables).operations:
                if isinstance(operation, RowRun) and operation.table.name.lower() == self._table:
                    sequence = self._take(operation, part.first_offset + slot, time_us, sequence)
            if self._rows > rows_before:
                self._size_bytes += len(record)
            if self._rows >= BATCH_ROWS or self._size_bytes >= BATCH_BYTES:
                yield from self.finish()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What is left."""
        if not self._rows:
            return
        arrays = [_array(field, self._columns[field.name]) for field in self._schema]
        self._columns = {field.name: [] for field in self._schema}
        self._rows = self._size_bytes = 0
        yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _take(self, run: RowRun, version: int, time_us: int, sequence: int) -> int:
        """Add a run's rows; returns the place in the transaction of the row that follows."""
        images: list[tuple[str, _Image]] = []
        match run.kind:
            case RowKind.INSERT:
                images = [(INSERT, run.new or ())]
            case RowKind.UPDATE:
                images = ([] if run.old is None else [(PREIMAGE, run.old)]) + [(POSTIMAGE, run.new or ())]
            case RowKind.DELETE:
                images = [(DELETE, run.old if run.old is not None else _key_image(run))]
        # A row's two images share its place in the order.
        places = range(sequence, sequence + run.count)
        own: dict[str, Sequence[Any]] = {
            "_commit_version": (version,) * run.count,
            "_commit_timestamp": (time_us,) * run.count,
            "_seq": places,
        }
        for kind, image in images:
            self._append(run.table, image, {**own, "_change_type": (kind,) * run.count}, run.count)
        return places.stop

    def _append(self, table: TableShape, image: _Image, own: dict[str, Sequence[Any]], count: int) -> None:
        index = {name.lower(): place for place, name in enumerate(table.columns)}
        for name, column in self._columns.items():
            lower = name.lower()
            if lower in own:
                column.extend(own[lower])
            elif lower in index:
                column.extend(image[index[lower]])
            else:
                column.extend((None,) * count)
        self._rows += count


def _key_image(run: RowRun) -> _Image:
    """Of a deleted row only its key is logged: the other columns are null."""
    image: list[Sequence[Any]] = [(None,) * run.count for _ in run.table.columns]
    if run.keys is not None:
        for index, column in zip(run.table.key, run.keys, strict=True):
            image[index] = column
    if run.table.rowid_column >= 0 and run.rowids is not None:
        image[run.table.rowid_column] = run.rowids
    return image


def _array(field: pa.Field, values: list[Any]) -> pa.Array:
    if pa.types.is_timestamp(field.type) and field.name.lower() in CHANGE_COLUMNS:
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
        if isinstance(value, bytes):
            return _text(field, value)
        return str(value)
    if pa.types.is_boolean(kind) and value in (0, 1):
        return bool(value)
    if pa.types.is_floating(kind) and isinstance(value, int | float):
        return float(value)
    if pa.types.is_integer(kind) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        return int(value)
    if pa.types.is_binary(kind) and isinstance(value, str | bytes):
        return value.encode() if isinstance(value, str) else value
    raise _misfit(field, value)


def _text(field: pa.Field, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise _misfit(field, value) from None


def _misfit(field: pa.Field, value: Any) -> ConfigError:
    return ConfigError(
        f"triplicate-changes: column {field.name!r} holds {value!r:.60}, which is no {field.type}; "
        "give a schema of your own in which the column is binary or a string"
    )
