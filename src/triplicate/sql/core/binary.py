"""Encoding and decoding of variable-length integers and length-prefixed text for the row log.

A varint has seven bits per byte, lowest first, and the top bit set on every byte but the last; at most ten bytes. Reading past the end
raises `IndexError` or `ValueError`; the public decoders turn both into `FormatError`.
"""

from __future__ import annotations

_MAX_SHIFT = 63


def write_varint(out: bytearray, number: int) -> None:
    """Append an unsigned number below 2**64."""
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at `position`, and the position after it."""
    byte = data[position]
    if byte < 0x80:
        return byte, position + 1
    number = byte & 0x7F
    shift = 7
    while True:
        position += 1
        byte = data[position]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position + 1
        shift += 7
        if shift > _MAX_SHIFT:
            raise ValueError("a varint is longer than ten bytes")


def write_bytes(out: bytearray, value: bytes) -> None:
    write_varint(out, len(value))
    out += value


def read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = read_varint(data, position)
    return read_exactly(data, position, size), position + size


def write_text(out: bytearray, value: str) -> None:
    write_bytes(out, value.encode())


def read_text(data: bytes, position: int) -> tuple[str, int]:
    raw, position = read_bytes(data, position)
    return raw.decode(), position


def read_exactly(data: bytes, position: int, size: int) -> bytes:
    """Exactly `size` bytes at `position`. Raises ValueError when fewer are left."""
    part = data[position : position + size]
    if len(part) != size:
        raise ValueError(f"{size} bytes expected at {position}, {len(part)} there")
    return part


def read_count(data: bytes, position: int) -> tuple[int, int]:
    """A number of rows. Raises ValueError."""
    count, position = read_varint(data, position)
    # Every row takes at least a byte, so a larger count is damage, and must not allocate memory.
    if not 0 < count <= len(data):
        raise ValueError(f"{count} rows in {len(data)} bytes")
    return count, position
