"""The rows of a task as data of COPY, with the change that they make. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from triplicate.errors import ConfigError
from triplicate.spark.core.database_options import CHANGES, DELETE, TABLES, UPSERT

CHUNK_BYTES = 256 * 1024
"""Approximate size of the data of one record of a staging ledger."""
_MADE_BY = {"insert": UPSERT, "update_postimage": UPSERT, "delete": DELETE, "update_preimage": ""}
"""The change that a row of a change feed makes. A row that is there twice, or not any more, is no error."""


def changes_of(
    rows: pa.RecordBatch, columns: Sequence[tuple[int, str]], action: str, changed_by: int | None, key: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Records of a staging ledger: the change as the key, CSV as the value.

    Of several changes of one row in a batch of rows the last one is made. So deletions can come first.

    Args:
        columns, changed_by: as `written_columns` returns them. key: the table's primary key.

    Raises:
        ConfigError: a row has no change that can be made.
    """
    named = pa.RecordBatch.from_arrays([rows.column(place) for place, _ in columns], names=[name for _, name in columns])
    if action != CHANGES or changed_by is None:
        yield from _records(action, named)
        return
    made = _made(rows.column(changed_by))
    last = _last_of_each(named, made, key)
    for kind in (DELETE, UPSERT):
        chosen = named.take(pa.array([place for place in last if made[place] == kind], pa.int64()))
        yield from _records(kind, chosen.select([name for _, name in columns if name in key]) if kind == DELETE else chosen)


def _made(kinds: pa.Array) -> list[str]:
    found = kinds.to_pylist()
    unknown = next((kind for kind in found if kind not in _MADE_BY), "")
    if unknown != "":
        raise ConfigError(
            f"{TABLES}: '_change_type' is {unknown!r} in a row: rows are {', '.join(_MADE_BY)}. Changes of the table's columns are made "
            "with ALTER TABLE"
        )
    return [_MADE_BY[kind] for kind in found]


def _last_of_each(rows: pa.RecordBatch, made: Sequence[str], key: Sequence[str]) -> list[int]:
    """The place of the last change of each key, in order."""
    keys = enumerate(zip(*(rows.column(name).to_pylist() for name in key), strict=True))
    return sorted({values: place for place, values in keys if made[place]}.values())


def _records(action: str, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if not rows.num_rows:
        return
    from pyarrow import csv

    texts = pa.RecordBatch.from_arrays([_as_text(column) for column in rows.columns], names=rows.schema.names)
    step = max(1, rows.num_rows * CHUNK_BYTES // max(1, texts.nbytes))
    chunks: list[bytes] = []
    for low in range(0, rows.num_rows, step):
        sink = pa.BufferOutputStream()
        csv.write_csv(texts.slice(low, step), sink, csv.WriteOptions(include_header=False))
        chunks.append(sink.getvalue().to_pybytes())
    kinds = pa.array([action.encode()] * len(chunks), pa.binary())
    yield pa.RecordBatch.from_arrays([kinds, pa.array(chunks, pa.binary())], names=["key", "value"])


def _as_text(column: pa.Array) -> pa.Array:
    """A column that Arrow writes into CSV as PostgreSQL reads it."""
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if value is None else "\\x" + value.hex() for value in column.to_pylist()], pa.string())
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return column.cast(pa.string())
    return column
