"""Decodes arrays, which exist only as parameters and constants, from both formats to the JSON that SQLite gets. Pure.

Source: PostgreSQL 15, ``array_in`` and ``array_recv``, catalogue ``pg_type``.
"""

from __future__ import annotations

import json
import math
import struct

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import convert

ARRAY_OF = {
    types.BOOL: 1000, types.BYTEA: 1001, types.INT2: 1005, types.INT4: 1007, types.TEXT: 1009, types.BPCHAR: 1014, types.VARCHAR: 1015,
    types.INT8: 1016, types.FLOAT4: 1021, types.FLOAT8: 1022, types.OID: 1028, types.TIMESTAMP: 1115, types.DATE: 1182, types.TIME: 1183,
    types.TIMESTAMPTZ: 1185, types.NUMERIC: 1231, types.UUID: 2951,
}  # fmt: skip
ELEMENT_OF = {array: element for element, array in ARRAY_OF.items()}
_ELEMENTS_MAX = 1_000_000


def decode_array(data: bytes, oid: int, is_binary: bool) -> str:
    """Decode an array parameter to a JSON array, in which bytes are hexadecimal digits.

    Raises:
        SqlError: 22P02 and 22P03 for a malformed array, 22021 for text that is not UTF-8, 0A000 for several dimensions and for NaN,
            54000 for too many elements.
    """
    element = ELEMENT_OF[oid]
    if is_binary:
        return _as_json(_decode_binary(data, element))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SqlError("22021", f"text is not valid UTF-8: {error.reason}") from None
    return _as_json(read_array(text, element))


def read_array(text: str, element: int) -> list[Value]:
    """The elements of an array in text format: ``{1,2,NULL}``. Raises SqlError as `decode_array`."""
    return [None if part is None else convert(part, None, element) for part in _parts(text)]


def _decode_binary(data: bytes, element: int) -> list[Value]:
    try:
        dimensions, _has_null, sent = struct.unpack_from(">iiI", data)
        if dimensions == 0:
            return []
        if dimensions != 1:
            raise _too_many()
        (count,) = struct.unpack_from(">i", data, 12)
        elements: list[Value] = []
        at = 20
        for _ in range(count):
            (size,) = struct.unpack_from(">i", data, at)
            at += 4
            if size < 0:
                elements.append(None)
                continue
            if at + size > len(data):
                raise SqlError("22P03", "insufficient data left in message")
            elements.append(types.decode_parameter(data[at : at + size], sent or element, True))
            at += size
    except struct.error as error:
        raise SqlError("22P03", f"malformed binary array: {error}") from None
    return elements


def _too_many() -> SqlError:
    return SqlError("0A000", "arrays of more than one dimension are not available", hint="Send one list of elements.")


def _parts(text: str) -> list[str | None]:
    body = text.strip()
    if len(body) < 2 or body[0] != "{" or body[-1] != "}":
        raise SqlError("22P02", f'malformed array literal: "{text[:60]}"', hint="Write {1,2,3}.")
    parts: list[str | None] = []
    at, end = 1, len(body) - 1
    if not body[1:end].strip():
        return parts
    while True:
        part, at = _part(body, at, end, text)
        parts.append(part)
        if at >= end:
            return parts
        if body[at] != ",":
            raise SqlError("22P02", f'malformed array literal: "{text[:60]}"')
        at += 1


def _part(body: str, at: int, end: int, text: str) -> tuple[str | None, int]:
    """(the element that begins at `at`, the position of the comma after it)."""
    while at < end and body[at].isspace():
        at += 1
    if at < end and body[at] == "{":
        raise _too_many()
    if at < end and body[at] == '"':
        characters: list[str] = []
        at += 1
        while at < end and body[at] != '"':
            at += body[at] == "\\"
            characters.append(body[at])
            at += 1
        at += 1
        while at < end and body[at].isspace():
            at += 1
        return "".join(characters), at
    stop = next((index for index in range(at, end) if body[index] == ","), end)
    word = body[at:stop].strip()
    if not word or '"' in word or "{" in word or "}" in word:
        raise SqlError("22P02", f'malformed array literal: "{text[:60]}"')
    if word.upper() == "NULL":
        return None, stop
    return word.replace("\\", ""), stop


def _as_json(values: list[Value]) -> str:
    if len(values) > _ELEMENTS_MAX:
        raise SqlError("54000", f"an array may have {_ELEMENTS_MAX} elements, this one has {len(values)}")
    return json.dumps([_json_value(value) for value in values], ensure_ascii=False)


def _json_value(value: Value) -> int | float | str | None:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        raise SqlError("0A000", "NaN and infinity are not available in arrays")
    if isinstance(value, str) and "\0" in value:
        raise SqlError("22021", "text cannot contain the character with code zero")
    return int(value) if isinstance(value, bool) else value
