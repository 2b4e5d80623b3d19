"""Encodes the rows of a result as DataRow messages, one after another."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Row
from triplicate.sql.pg.values.field_codecs import field_encoder

_HEADER = struct.Struct(">ciH")
"""Letter, length of the rest of the message, number of the fields."""
_RESULT_SHAPES = 2000


class RowEncoder:
    """Encodes the rows of results with the same columns.

    Args:
        oids, formats, typmods: of each column. A format is 0 for text and 1 for binary. No typmods at all stand for -1 each.
    """

    __slots__ = ("_columns", "_fields")

    def __init__(self, oids: Sequence[int], formats: Sequence[int], typmods: Sequence[int]) -> None:
        shapes = zip(oids, formats, typmods or [-1] * len(oids), strict=True)
        self._fields = [field_encoder(oid, bool(shown), typmod) for oid, shown, typmod in shapes]
        self._columns = len(self._fields)

    def encode(self, rows: Sequence[Row]) -> bytes:
        """The DataRow messages of some rows.

        Raises:
            SqlError: 22P02 for a value that cannot be sent as its column's type, 22003 for an integer overflow.
        """
        fields, columns = self._fields, self._columns
        if len(rows) == 1:
            body = b"".join([encode(value) for encode, value in zip(fields, rows[0], strict=True)])
            return _HEADER.pack(b"D", len(body) + 6, columns) + body
        messages: list[bytes] = []
        for row in rows:
            body = b"".join([encode(value) for encode, value in zip(fields, row, strict=True)])
            messages.append(_HEADER.pack(b"D", len(body) + 6, columns))
            messages.append(body)
        return b"".join(messages)


@lru_cache(maxsize=_RESULT_SHAPES)
def row_encoder(oids: tuple[int, ...], formats: tuple[int, ...], typmods: tuple[int, ...]) -> RowEncoder:
    """The encoder of results with these columns, made once; see `RowEncoder`."""
    return RowEncoder(oids, formats, typmods)


class ResultForm(NamedTuple):
    """The results of a statement in the formats that a client wants."""

    formats: tuple[int, ...]
    """One per column: 0 text, 1 binary."""
    encoder: RowEncoder


def make_result_form(oids: tuple[int, ...], result_formats: tuple[int, ...], typmods: tuple[int, ...]) -> ResultForm:
    """The form of results with these columns.

    Args:
        oids, typmods: as for `RowEncoder`. result_formats: as in Bind.

    Raises:
        SqlError: 08P01 for another number of formats than of columns.
    """
    formats = _formats_of_columns(result_formats, len(oids))
    return ResultForm(formats, row_encoder(oids, formats, typmods))


def _formats_of_columns(formats: tuple[int, ...], count: int) -> tuple[int, ...]:
    if len(formats) < 2:
        return (formats or (0,)) * count
    if len(formats) != count:
        raise SqlError("08P01", f"the bind message has {len(formats)} result formats but the statement has {count} columns")
    return formats
