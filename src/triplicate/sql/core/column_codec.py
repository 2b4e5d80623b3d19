"""Encoding and decoding of columns of SQLite values.

Rows of one table and kind are stored by column. A run of many rows costs a few operations in C per column, not Python code per value;
integers have the width that their range needs; and a reader can pass a column on without decoding its rows.

One column of n values: a kind byte, then by kind. Bit 7 of the kind says that a bitmap of nulls (bit i of byte i/8 set: value i is
null) comes first; then only the other values follow.

    0         all null
    1 2 4 8   integers of that many bytes, signed, little-endian
    16        IEEE doubles, little-endian
    17        text that is all ASCII: lengths, then the characters of all values
    18        text: lengths in bytes, then the UTF-8 of all values
    19        bytes: lengths, then all bytes
    20        mixed: one tag per value (0 null, 1 integer, 2 real, 3 text, 4 bytes), then a column for each tag that occurs, in order

Lengths are a width byte (1, 2 or 4) and n unsigned integers of that width.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from triplicate.sql.core.binary import read_exactly

Value = None | int | float | str | bytes
"""A value of SQLite, one of its five kinds."""

_NULLS = 0
_REAL = 16
_ASCII = 17
_TEXT = 18
_BYTES = 19
_MIXED = 20
_NULLABLE = 0x80

_INTEGER_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}
_LENGTH_CODES = {1: "B", 2: "H", 4: "I"}
_TAGS: dict[type, int] = {type(None): 0, int: 1, float: 2, str: 3, bytes: 4}
_TAG_TYPES: tuple[type, ...] = (type(None), int, float, str, bytes)

_ONE_BYTE = tuple(bytes((1, value & 0xFF)) for value in (*range(0x80), *range(-0x80, 0)))
"""A column of one integer of one byte, by the integer: negative ones count from the end."""
_SHORT_ASCII = tuple(bytes((_ASCII, 1, length)) for length in range(0x100))
"""The start of a column of one text of ASCII, by its length."""
_TWO_BYTES = struct.Struct("<Bh").pack
_FOUR_BYTES = struct.Struct("<Bi").pack
_EIGHT_BYTES = struct.Struct("<Bq").pack
_ONE_REAL = struct.Struct("<Bd").pack
_ONE_NUMBER = {kind: struct.Struct(f"<{code}").unpack_from for kind, code in ((2, "h"), (4, "i"), (8, "q"), (_REAL, "d"))}
"""Decodes a column of one number, by the column's kind."""


def encode_column(out: bytearray, values: Sequence[Value]) -> None:
    """Append one column. Integers must fit 64 bits, text must be encodable.

    Raises:
        TypeError: a value is none of SQLite's five kinds.
    """
    if len(values) == 1:
        encode_single_values(out, values)
        return
    kinds = set(map(type, values))
    if len(kinds) == 1:
        _encode_kind(out, kinds.pop(), values, 0)
        return
    if len(kinds) == 2 and type(None) in kinds:
        kinds.discard(type(None))
        bits = "".join(["1" if value is None else "0" for value in reversed(values)])
        mask = int(bits, 2).to_bytes((len(values) + 7) // 8, "little")
        start = len(out)
        _encode_kind(out, kinds.pop(), [value for value in values if value is not None], _NULLABLE)
        out[start + 1 : start + 1] = mask
        return
    _encode_mixed(out, values)


def encode_single_values(out: bytearray, values: Iterable[Value]) -> None:
    """Append several columns, each of one of these values. Most transactions change one row.

    Raises:
        TypeError: a value is none of SQLite's five kinds.
    """
    for value in values:
        kind = type(value)
        if kind is int:
            if -0x80 <= value <= 0x7F:  # type: ignore[operator]  # an integer, as are those below
                out += _ONE_BYTE[value]  # type: ignore[index]
            elif -0x8000 <= value <= 0x7FFF:  # type: ignore[operator]
                out += _TWO_BYTES(2, value)
            elif -0x80000000 <= value <= 0x7FFFFFFF:  # type: ignore[operator]
                out += _FOUR_BYTES(4, value)
            else:
                out += _EIGHT_BYTES(8, value)
        elif kind is str and len(value) <= 0xFF and value.isascii():  # type: ignore[arg-type, union-attr]
            out += _SHORT_ASCII[len(value)]  # type: ignore[arg-type]
            out += value.encode()  # type: ignore[union-attr]
        elif value is None:
            out.append(_NULLS)
        elif kind is float:
            out += _ONE_REAL(_REAL, value)
        else:
            _encode_kind(out, kind, (value,), 0)


def _encode_kind(out: bytearray, kind: type, values: Sequence[Value], flag: int) -> None:
    if kind is int:
        _encode_integers(out, values, flag)  # type: ignore[arg-type]  # the kinds of all values were checked
    elif kind is str:
        _encode_text(out, values, flag)  # type: ignore[arg-type]
    elif kind is float:
        out.append(_REAL | flag)
        out += struct.pack(f"<{len(values)}d", *values)
    elif kind is type(None):
        out.append(_NULLS)
    elif kind is bytes:
        out.append(_BYTES | flag)
        _encode_lengths(out, list(map(len, values)))  # type: ignore[arg-type]
        out += b"".join(values)  # type: ignore[arg-type]
    else:
        raise TypeError(f"{kind.__name__} is not a value of SQLite")


def _encode_integers(out: bytearray, values: Sequence[int], flag: int) -> None:
    low, high = min(values), max(values)
    if low >= -0x80 and high <= 0x7F:
        width = 1
    elif low >= -0x8000 and high <= 0x7FFF:
        width = 2
    elif low >= -0x80000000 and high <= 0x7FFFFFFF:
        width = 4
    else:
        width = 8
    out.append(width | flag)
    out += struct.pack(f"<{len(values)}{_INTEGER_CODES[width]}", *values)


def _encode_text(out: bytearray, values: Sequence[str], flag: int) -> None:
    joined = "".join(values)
    if joined.isascii():
        out.append(_ASCII | flag)
        _encode_lengths(out, list(map(len, values)))
        out += joined.encode()
        return
    encoded = [value.encode() for value in values]
    out.append(_TEXT | flag)
    _encode_lengths(out, list(map(len, encoded)))
    out += b"".join(encoded)


def _encode_lengths(out: bytearray, lengths: list[int]) -> None:
    longest = max(lengths)
    width = 1 if longest <= 0xFF else 2 if longest <= 0xFFFF else 4
    out.append(width)
    out += struct.pack(f"<{len(lengths)}{_LENGTH_CODES[width]}", *lengths)


def _encode_mixed(out: bytearray, values: Sequence[Value]) -> None:
    tags = bytes(_TAGS[type(value)] for value in values)
    out.append(_MIXED)
    out += tags
    for tag, kind in enumerate(_TAG_TYPES):
        if tag and tag in tags:
            _encode_kind(out, kind, [value for value in values if type(value) is kind], 0)


def decode_column(data: bytes, position: int, count: int) -> tuple[Sequence[Value], int]:
    """A column of `count` values at `position`, and the position after it.

    Raises:
        ValueError, IndexError, struct.error: the bytes are not a column.
    """
    kind = data[position]
    position += 1
    if kind == _NULLS:
        return (None,) * count, position
    if kind == _MIXED:
        return _decode_mixed(data, position, count)
    if not kind & _NULLABLE:
        return _decode_kind(data, position, count, kind)
    size = (count + 7) // 8
    mask = int.from_bytes(read_exactly(data, position, size), "little")
    nulls = mask.bit_count()
    if mask >> count:
        raise ValueError("a bitmap of nulls has more bits than values")
    present, position = _decode_kind(data, position + size, count - nulls, kind & ~_NULLABLE)
    following = iter(present)
    bits = reversed(f"{mask:0{count}b}")
    return [None if bit == "1" else next(following) for bit in bits], position


def decode_columns(data: bytes, position: int, width: int, count: int) -> tuple[list[Sequence[Value]], int]:
    """`width` columns of `count` values each, and the position after them.

    Raises:
        ValueError, IndexError, struct.error: the bytes are not columns.
    """
    if count == 1:
        values: list[Value] = []
        position = decode_single_values(values, data, position, width)
        return list(zip(values)), position
    columns: list[Sequence[Value]] = []
    for _ in range(width):
        column, position = decode_column(data, position, count)
        columns.append(column)
    return columns, position


def decode_single_values(values: list[Value], data: bytes, position: int, width: int) -> int:
    """Append the values of `width` columns of one value each; returns the position after them. Most transactions change one row.

    Raises:
        ValueError, IndexError, struct.error: the bytes are not columns. Some values may have been appended.
    """
    for _ in range(width):
        kind = data[position]
        if kind == _ASCII and data[position + 1] == 1:
            start = position + 3
            position = start + data[position + 2]
            if position > len(data):
                raise ValueError("a text is longer than its record")
            values.append(data[start:position].decode("ascii"))
        elif kind == 1:
            value = data[position + 1]
            values.append(value if value <= 0x7F else value - 0x100)
            position += 2
        elif kind == _NULLS:
            values.append(None)
            position += 1
        elif (decode := _ONE_NUMBER.get(kind)) is not None:
            values += decode(data, position + 1)
            position += 9 if kind == _REAL else 1 + kind
        else:
            column, position = decode_column(data, position, 1)
            values += column
    return position


def _decode_kind(data: bytes, position: int, count: int, kind: int) -> tuple[Sequence[Value], int]:
    code = _INTEGER_CODES.get(kind)
    if code is not None:
        return struct.unpack_from(f"<{count}{code}", data, position), position + count * kind
    if kind == _REAL:
        return struct.unpack_from(f"<{count}d", data, position), position + count * 8
    if kind not in (_ASCII, _TEXT, _BYTES):
        raise ValueError(f"unknown kind of column {kind}")
    lengths, position = _decode_lengths(data, position, count)
    ends = list(accumulate(lengths))
    size = ends[-1] if ends else 0
    raw = read_exactly(data, position, size)
    position += size
    starts = [0, *ends[:-1]] if ends else []
    if kind == _ASCII:
        text = raw.decode("ascii")
        return [text[start:end] for start, end in zip(starts, ends, strict=True)], position
    if kind == _TEXT:
        return [raw[start:end].decode() for start, end in zip(starts, ends, strict=True)], position
    return [raw[start:end] for start, end in zip(starts, ends, strict=True)], position


def _decode_lengths(data: bytes, position: int, count: int) -> tuple[tuple[int, ...], int]:
    width = data[position]
    code = _LENGTH_CODES.get(width)
    if code is None:
        raise ValueError(f"unknown width of lengths {width}")
    return struct.unpack_from(f"<{count}{code}", data, position + 1), position + 1 + count * width


def _decode_mixed(data: bytes, position: int, count: int) -> tuple[Sequence[Value], int]:
    tags = read_exactly(data, position, count)
    position += count
    if tags and max(tags) >= len(_TAG_TYPES):
        raise ValueError("unknown tag in a mixed column")
    parts: dict[int, Iterator[Value]] = {}
    for tag in range(1, len(_TAG_TYPES)):
        number = tags.count(tag)
        if number:
            kind = data[position]
            part, position = _decode_kind(data, position + 1, number, kind)
            parts[tag] = iter(part)
    return [None if tag == 0 else next(parts[tag]) for tag in tags], position
