"""The shape of a table in the log: its name, columns, declared types, and how its rows are addressed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from triplicate.sql.core.binary import read_text, read_varint, write_text, write_varint

_WITHOUT_ROWID = 1
_ENCODED_SHAPES = 1024
"""Shapes whose encoded form is remembered."""
_DECODED_DICTIONARIES = 128
"""Dictionaries of batches whose decoded form is remembered."""
_REMEMBERED_BYTES = 64 * 1024
"""Upper bound on the bytes of such a dictionary."""


@dataclass(frozen=True, slots=True)
class TableShape:
    """One table at one moment. Generated columns are left out: their values follow from the others.

    Rows are addressed by rowid, or by the primary key in a WITHOUT ROWID table.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    """Declared types as written, '' for none."""
    key: tuple[int, ...] = ()
    """Indices of the primary key's columns, in key order; empty without a declared key."""
    rowid_column: int = -1
    """Index of the column that is another name of the rowid (INTEGER PRIMARY KEY), else -1."""
    without_rowid: bool = False

    def __hash__(self) -> int:
        # Each batch looks its tables up by value. Names suffice for that, and hashing all columns would take longer than the rest.
        return hash((self.name, len(self.columns)))

    @property
    def stored(self) -> tuple[int, ...]:
        """Indices of the columns whose values a row run carries: all but the rowid's other name."""
        return tuple(index for index in range(len(self.columns)) if index != self.rowid_column)


@lru_cache(maxsize=_ENCODED_SHAPES)
def encode_table(shape: TableShape) -> bytes:
    """A shape as the header of a batch holds it. Remembered, since most batches name the same few tables."""
    out = bytearray()
    write_text(out, shape.name)
    out.append(_WITHOUT_ROWID if shape.without_rowid else 0)
    write_varint(out, shape.rowid_column + 1)
    write_varint(out, len(shape.key))
    for index in shape.key:
        write_varint(out, index)
    write_varint(out, len(shape.columns))
    for name, declared in zip(shape.columns, shape.types, strict=True):
        write_text(out, name)
        write_text(out, declared)
    return bytes(out)


def decode_tables(data: bytes) -> tuple[TableShape, ...]:
    """The shapes at the end of a batch's header, from their number on. Remembered, since most batches name the same few tables.

    Raises:
        ValueError, IndexError: the bytes are not a dictionary of tables.
    """
    return _remembered_tables(data) if len(data) <= _REMEMBERED_BYTES else _decode_tables(data)


def _decode_tables(data: bytes) -> tuple[TableShape, ...]:
    count, position = read_varint(data, 0)
    tables = []
    for _ in range(count):
        shape, position = _decode_table(data, position)
        tables.append(shape)
    if position != len(data):
        raise ValueError(f"{len(data) - position} bytes too many")
    return tuple(tables)


_remembered_tables = lru_cache(maxsize=_DECODED_DICTIONARIES)(_decode_tables)


def _decode_table(data: bytes, position: int) -> tuple[TableShape, int]:
    name, position = read_text(data, position)
    flags = data[position]
    if flags & ~_WITHOUT_ROWID:
        raise ValueError(f"unknown flags {flags:#x} of table {name!r}")
    rowid_column, position = read_varint(data, position + 1)
    key_count, position = read_varint(data, position)
    key = []
    for _ in range(key_count):
        index, position = read_varint(data, position)
        key.append(index)
    count, position = read_varint(data, position)
    columns: list[str] = []
    types: list[str] = []
    for _ in range(count):
        column, position = read_text(data, position)
        declared, position = read_text(data, position)
        columns.append(column)
        types.append(declared)
    if rowid_column > count or any(index >= count for index in key):
        raise ValueError(f"table {name!r} names a column it does not have")
    shape = TableShape(name, tuple(columns), tuple(types), tuple(key), rowid_column - 1, bool(flags & _WITHOUT_ROWID))
    return shape, position
