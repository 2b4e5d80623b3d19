"""The results of a transaction's statements, as its record and the history of requests hold them. See `records.py` for the format."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from triplicate.errors import FormatError
from triplicate.sql.core.binary import read_count, read_varint, write_varint
from triplicate.sql.core.column_codec import Value, decode_column, encode_column

_NO_ROWS, _ROWS, _ROWS_DROPPED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class StatementResult:
    """The result of one statement of a transaction."""

    rows_affected: int
    rows: tuple[tuple[Value, ...], ...] = ()
    rows_dropped: bool = False
    """The statement returned rows that were too large to keep."""


def encode_results(results: Sequence[StatementResult]) -> bytes:
    """The results alone, as they are stored with a request id."""
    out = bytearray()
    write_varint(out, len(results))
    for result in results:
        write_varint(out, result.rows_affected)
        if result.rows_dropped:
            out.append(_ROWS_DROPPED)
        elif not result.rows:
            out.append(_NO_ROWS)
        else:
            out.append(_ROWS)
            write_varint(out, len(result.rows[0]))
            write_varint(out, len(result.rows))
            for column in zip(*result.rows, strict=True):
                encode_column(out, column)
    return bytes(out)


def decode_results(data: bytes) -> tuple[StatementResult, ...]:
    """Raises FormatError."""
    try:
        results, position = read_results(data, 0)
        if position != len(data):
            raise ValueError(f"{len(data) - position} bytes too many")
    except (IndexError, ValueError, struct.error) as error:
        raise FormatError(f"the results of a transaction cannot be read: {error}") from error
    return results


def read_results(data: bytes, position: int) -> tuple[tuple[StatementResult, ...], int]:
    """The results that begin at a position, and the position behind them. Raises ValueError, IndexError, struct.error."""
    count, position = read_varint(data, position)
    results = []
    for _ in range(count):
        affected, position = read_varint(data, position)
        flag = data[position]
        position += 1
        if flag == _ROWS:
            width, position = read_varint(data, position)
            length, position = read_count(data, position)
            columns = []
            for _ in range(width):
                column, position = decode_column(data, position, length)
                columns.append(column)
            results.append(StatementResult(affected, tuple(zip(*columns, strict=True))))
        elif flag in (_NO_ROWS, _ROWS_DROPPED):
            results.append(StatementResult(affected, (), flag == _ROWS_DROPPED))
        else:
            raise ValueError(f"unknown flag {flag} of a result")
    return tuple(results), position
