"""Converts decoded entries to Arrow record batches and back, without processing single records.

An entry's columns are laid out as Arrow lays out binary columns, so a batch is made of the entry's own buffers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from triplicate.errors import ConfigError, RecordTooLarge
from triplicate.log import ENTRY_LIMIT_BYTES, ENTRY_TARGET_BYTES, HEADER_KEY_LIMIT_BYTES, Columns, EntryView
from triplicate.spark.core.column_checks import PLACES

BATCH_ROWS = 8_192
BATCH_BYTES = 4 * 1024 * 1024
"""Limits of a batch for Spark, in rows and bytes."""
_HEADER_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@dataclass(frozen=True, slots=True)
class EntryRange:
    """The records of one entry that a task delivers: slots `low` to `high` (exclusive)."""

    view: EntryView
    first_offset: int
    low: int
    high: int
    ledger_id: int
    entry_id: int


def record_batches(log: str, ranges: Iterable[EntryRange], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Batches of a log's records with the columns of `schema`.

    Small entries are put together and large ones cut, so that every batch but the last has about `BATCH_ROWS` rows or `BATCH_BYTES` bytes.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for part in ranges:
        for low in range(part.low, part.high, BATCH_ROWS):
            batch = _entry_batch(log, part, low, min(low + BATCH_ROWS, part.high), schema)
            waiting.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= BATCH_ROWS or size >= BATCH_BYTES:
                yield _joined(waiting)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _entry_batch(log: str, part: EntryRange, low: int, high: int, schema: pa.Schema) -> pa.RecordBatch:
    view, count = part.view, high - low
    columns: list[pa.Array] = []
    for field in schema:
        match field.name.lower():
            case "log":
                columns.append(pa.repeat(pa.scalar(log, pa.string()), count))
            case "offset":
                columns.append(pa.array(np.arange(part.first_offset + low, part.first_offset + high, dtype=np.int64)))
            case "timestamp":
                columns.append(_timestamps(view, low, high))
            case "key":
                columns.append(_binary(view.key_offsets, view.key_data, view.key_validity, low, high, view.count))
            case "value":
                columns.append(_binary(view.value_offsets, view.value_data, view.value_validity, low, high, view.count))
            case "headers":
                columns.append(_headers(view, low, high))
            case "_ledger_id":
                columns.append(pa.repeat(pa.scalar(part.ledger_id, pa.int64()), count))
            case "_entry_id":
                columns.append(pa.repeat(pa.scalar(part.entry_id, pa.int64()), count))
            case other:
                raise ConfigError(f"triplicate: a log has no column {other!r}")
    return pa.RecordBatch.from_arrays([_as(column, field) for column, field in zip(columns, schema, strict=True)], schema=schema)


def _as(column: pa.Array, field: pa.Field) -> pa.Array:
    """The column in the requested type: with a user's schema, values and keys may be strings."""
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise ConfigError(f"triplicate: column {field.name!r} holds a value that is no {field.type}: {error}; read it as binary") from error


def _binary(offsets: Any, data: Any, validity: Any, low: int, high: int, count: int) -> pa.Array:
    if offsets is None:
        return pa.nulls(high - low, pa.binary())
    bits = None if validity is None else pa.py_buffer(validity)
    return pa.Array.from_buffers(pa.binary(), count, [bits, pa.py_buffer(offsets), pa.py_buffer(data)]).slice(low, high - low)


def _timestamps(view: EntryView, low: int, high: int) -> pa.Array:
    """The time of each record, or the entry's time if records have none."""
    kind = pa.timestamp("us", tz="UTC")
    if view.timestamps_us is None:
        return pa.repeat(pa.scalar(view.header.wall_time_us, pa.int64()), high - low).cast(kind)
    return pa.array(np.frombuffer(view.timestamps_us, dtype=np.int64)[low:high]).cast(kind)


def _headers(view: EntryView, low: int, high: int) -> pa.Array:
    headers = view.headers(low, high)
    if headers is None:
        return pa.nulls(high - low, _HEADER_TYPE)
    return pa.array([[{"key": key, "value": value} for key, value in record] for record in headers], _HEADER_TYPE)


# Writing.

_RECORD_COST_BYTES = 21
"""Upper bound of a record's overhead in bytes: offsets of value, key and headers, a time, and validity bits."""
_ENTRY_COST_BYTES = 256
"""Upper bound of an entry's header and padding in bytes."""
RECORD_LIMIT_BYTES = ENTRY_LIMIT_BYTES - _ENTRY_COST_BYTES - _RECORD_COST_BYTES
"""Maximum size of a record in bytes: value, key, and for each header its key, its value and 6 bytes."""


def entries_of(batch: pa.RecordBatch, now_us: int) -> Iterator[Columns]:
    """Cut a batch into entries of about `ENTRY_TARGET_BYTES`, as buffers.

    Args:
        now_us: µs since the epoch; the time of records whose own is null.

    Raises:
        RecordTooLarge: a single record exceeds the limit of an entry. The message names its row.
        ConfigError: a column filled by the log is not null, or a header has no key.
    """
    if batch.num_rows == 0:
        return
    columns_by_name = {name.lower(): batch.column(index) for index, name in enumerate(batch.schema.names)}
    _check_log_positions(columns_by_name, batch.num_rows)
    value = _BinaryColumn(columns_by_name["value"])
    key = _BinaryColumn(columns_by_name["key"]) if "key" in columns_by_name else None
    headers = _encoded_headers(columns_by_name["headers"]) if "headers" in columns_by_name else None
    times = _microseconds(columns_by_name["timestamp"], now_us) if "timestamp" in columns_by_name else None
    ends = np.arange(1, batch.num_rows + 1) * _RECORD_COST_BYTES + sum(part.ends for part in (value, key, headers) if part is not None)
    low = 0
    while low < batch.num_rows:
        base = int(ends[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(ends, base + ENTRY_TARGET_BYTES, side="right")))
        size = int(ends[low]) - base - _RECORD_COST_BYTES
        if size > RECORD_LIMIT_BYTES:
            raise RecordTooLarge(
                f"triplicate: the record in row {low} of a batch has {size} bytes; value, key and headers of a record have at most "
                f"{RECORD_LIMIT_BYTES} together"
            )
        columns = Columns(high - low, *value.cut(low, high), value_validity=value.validity(low, high))
        if key is not None:
            columns.key_offsets, columns.key_data = key.cut(low, high)
            columns.key_validity = key.validity(low, high)
        if headers is not None:
            columns.header_offsets, columns.header_data = headers.cut(low, high)
        if times is not None:
            columns.timestamps_us = times[low:high].astype("<i8").tobytes()
        yield columns
        low = high


def _check_log_positions(columns: Mapping[str, pa.Array], rows: int) -> None:
    """Refuse rows with a log position, as all rows read from a log have: they may have the options of the table that they were read from,
    and would be written there. A row of nulls from an outer join is refused for the same reason."""
    if PLACES.keys().isdisjoint(columns):
        return
    for name in PLACES.keys() & columns.keys():
        if columns[name].null_count < rows:
            raise ConfigError(
                f"triplicate: column {name!r} is filled by the log and cannot be written: name the columns of a record, as in "
                "INSERT INTO t (key, value) SELECT key, value FROM …"
            )
    empty = np.ones(rows, dtype=bool)
    for column in columns.values():
        empty &= np.asarray(column.is_null())
    if empty.any():
        raise ConfigError(
            "triplicate: a row has neither key nor value; name the columns that are written, as in INSERT INTO t (key, value) …"
        )


def _encoded_headers(column: pa.Array) -> _BinaryColumn | None:
    """The headers of each record in the entry's encoding, computed for all records at once; None if no record has headers."""
    if column.null_count == len(column):
        return None
    from pyarrow import compute as pc  # It takes longer to load than the rest of Arrow, and few jobs write headers.

    flat = column.flatten()
    keys, values = (part.cast(pa.binary()) for part in flat.flatten())
    if flat.null_count or keys.null_count:
        raise ConfigError("triplicate: a header in column 'headers' has no key; its value may be null, its key may not")
    key_lengths, value_lengths = (np.asarray(pc.binary_length(part).fill_null(-1)) for part in (keys, values))
    if key_lengths.max(initial=0) > HEADER_KEY_LIMIT_BYTES:
        raise RecordTooLarge(
            f"triplicate: the key of a header has {key_lengths.max()} bytes; at most {HEADER_KEY_LIMIT_BYTES} are possible"
        )
    none = pa.scalar(b"", pa.binary())
    parts = (_words(key_lengths.astype("<u2")), keys, _words(value_lengths.astype("<i4")), values.fill_null(none))
    encoded = pc.binary_join_element_wise(*parts, none)
    counts = np.asarray(pc.list_value_length(column).fill_null(0))
    lists = pa.ListArray.from_arrays(pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32()), encoded)
    return _BinaryColumn(pc.binary_join(lists, none))


def _words(numbers: Any) -> pa.Array:
    """The bytes of each number."""
    width = numbers.dtype.itemsize
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * width
    return pa.Array.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(numbers.tobytes())])


def _microseconds(column: pa.Array, now_us: int) -> Any:
    return np.asarray(column.cast(pa.timestamp("us")).cast(pa.int64()).fill_null(now_us))


class _BinaryColumn:
    """A binary or string column that can be sliced without processing its records."""

    def __init__(self, array: pa.Array) -> None:
        plain = array.cast(pa.binary())
        _, offsets, data = plain.buffers()
        self._array = plain
        self._offsets = np.frombuffer(offsets, dtype=np.int32)[plain.offset : plain.offset + len(plain) + 1]
        self._data = memoryview(data) if data is not None else memoryview(b"")
        self.ends = self._offsets[1:].astype(np.int64) - int(self._offsets[0])
        """Bytes up to the end of each record."""

    def cut(self, low: int, high: int) -> tuple[bytes, bytes]:
        """Offsets beginning at 0, and data, of the records `low` to `high`."""
        base = int(self._offsets[low])
        offsets = (self._offsets[low : high + 1] - base).astype("<u4").tobytes()
        return offsets, bytes(self._data[base : int(self._offsets[high])])

    def validity(self, low: int, high: int) -> bytes | None:
        """The validity bits, or None if no value is null."""
        part = self._array.slice(low, high - low)
        if part.null_count == 0:
            return None
        return np.packbits(np.asarray(part.is_valid()), bitorder="little").tobytes()
