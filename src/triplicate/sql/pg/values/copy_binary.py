"""COPY's binary format: a header, then each row as counted fields. Pure.

Source: PostgreSQL 15 documentation, "COPY", section "Binary Format"; ``ReceiveCopyBinaryHeader`` and ``NextCopyFrom``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from triplicate.sql.pg.values.copy_lines import NO_ROWS, ROW_BYTES_MAX, CopyPlace, CopyRows

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
HEADER = SIGNATURE + struct.pack(">ii", 0, 0)
TRAILER = struct.pack(">h", -1)

_HEADER_FIELDS = struct.Struct(">Ii")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class BinaryReader:
    """Reads rows of the binary format, with `columns` fields each."""

    def __init__(self, place: CopyPlace, columns: int) -> None:
        self._place = place
        self._columns = columns
        self._rest = b""
        """The beginning of an incomplete row, or of the header."""
        self._wanted = 0
        """Bytes that must have arrived before the next attempt to read."""
        self._has_header = False
        self._is_ended = False
        self._row = 0
        """Number of the last row."""

    def feed(self, data: bytes) -> CopyRows:
        """Add received data; returns the rows that are complete now.

        Raises:
            SqlError: 22P04 for malformed data, 54000 for a row that is too long.
        """
        if self._is_ended:
            if data:
                raise self._place.error("22P04", "received copy data after EOF marker", self._row + 1)
            return NO_ROWS
        buffered = self._rest + data if self._rest else data
        if len(buffered) < min(self._wanted, ROW_BYTES_MAX):
            self._rest = buffered
            return NO_ROWS
        at = 0
        if not self._has_header:
            at = self._header_end(buffered)
            if not self._has_header:
                self._rest = buffered
                return NO_ROWS
        rows, at = self._rows(buffered, at)
        self._rest = buffered[at:]
        if len(self._rest) > ROW_BYTES_MAX:
            raise self._place.error("54000", f"a row of the data has more than {ROW_BYTES_MAX} bytes", self._row + 1)
        self._wanted = 0 if rows else 2 * len(self._rest)
        if self._is_ended and self._rest:
            raise self._place.error("22P04", "received copy data after EOF marker", self._row + 1)
        first, self._row = self._row + 1, self._row + len(rows)
        return CopyRows(rows, range(first, self._row + 1))

    def finish(self) -> CopyRows:
        """The data are complete. Raises SqlError 22P04 for an incomplete row or header. The trailer may be missing, as in PostgreSQL."""
        self._wanted = 0
        found = self.feed(b"")
        if not self._has_header:
            raise self._place.error("22P04", "COPY file signature not recognized", 1)
        if self._rest:
            raise self._place.error("22P04", "unexpected EOF in COPY data", self._row + 1)
        return found

    def _header_end(self, data: bytes) -> int:
        """The position after the header, or 0 if it is incomplete."""
        if not SIGNATURE.startswith(data[: len(SIGNATURE)]):
            raise self._place.error("22P04", "COPY file signature not recognized", 1)
        start = len(SIGNATURE)
        if len(data) < start + _HEADER_FIELDS.size:
            return 0
        flags, extension = _HEADER_FIELDS.unpack_from(data, start)
        if flags & 1 << 16:
            raise self._place.error("22P04", "invalid COPY file header (WITH OIDS)", 1)
        if flags >> 16:
            raise self._place.error("22P04", "unrecognized critical flags in COPY file header", 1)
        if extension < 0:
            raise self._place.error("22P04", "invalid COPY file header (wrong length)", 1)
        end = start + _HEADER_FIELDS.size + int(extension)
        self._has_header = len(data) >= end
        return end if self._has_header else 0

    def _rows(self, data: bytes, at: int) -> tuple[list[Sequence[bytes | None]], int]:
        """(the complete rows from a position on, the position after them)"""
        count_at, size_at, length, columns = _INT16.unpack_from, _INT32.unpack_from, len(data), self._columns
        rows: list[Sequence[bytes | None]] = []
        while at + 2 <= length:
            (count,) = count_at(data, at)
            position = at + 2
            if count != columns:
                if count == -1:
                    self._is_ended = True
                    return rows, position
                message = f"row field count is {count}, expected {columns}"
                raise self._place.error("22P04", message, self._row + len(rows) + 1)
            fields: list[bytes | None] = []
            for _ in range(columns):
                if position + 4 > length:
                    return rows, at
                (size,) = size_at(data, position)
                position += 4
                if size >= 0:
                    end = position + size
                    if end > length:
                        return rows, at
                    fields.append(data[position:end])
                    position = end
                elif size == -1:
                    fields.append(None)
                else:
                    raise self._place.error("22P04", "invalid field size", self._row + len(rows) + 1)
            rows.append(fields)
            at = position
        return rows, at


def binary_row(fields: Sequence[bytes | None]) -> bytes:
    """One row of the binary format."""
    parts = [_INT16.pack(len(fields))]
    for field in fields:
        if field is None:
            parts.append(b"\xff\xff\xff\xff")
        else:
            parts.append(_INT32.pack(len(field)))
            parts.append(field)
    return b"".join(parts)
