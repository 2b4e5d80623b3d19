"""Encodes arrays in results, which only the catalogue has, from their text. Pure.

Source: PostgreSQL 15, ``array_send`` and ``int2vectorsend``.
"""

from __future__ import annotations

import struct

from triplicate.sql.catalogue.array_functions import array_text, array_values
from triplicate.sql.catalogue.type_names import TYPES
from triplicate.sql.core.interface import Value

ELEMENTS = {oid: facts.element for oid, facts in TYPES.items() if facts.category == "A"}
"""Maps the oid of an array's type to that of its elements."""
_PACKED = {20: struct.Struct(">q"), 21: struct.Struct(">h"), 23: struct.Struct(">i"), 26: struct.Struct(">I")}
_INT2VECTOR = 22
BOOL_ARRAY = 1000
_TRUE = (1, "1", "t", "true")


def encode_array(text: str, oid: int) -> bytes:
    """Encode an array of one dimension in binary format.

    Raises:
        SqlError, ValueError, struct.error: the text is not an array of this type.
    """
    values = array_values(text)
    element = ELEMENTS[oid]
    has_null = int(None in values)
    if not values:
        return struct.pack(">iiI", 0, has_null, element)
    lower = 0 if oid == _INT2VECTOR else 1
    header = struct.pack(">iiIii", 1, has_null, element, len(values), lower)
    return header + b"".join(_element(value, element) for value in values)


def array_in_text(text: str, oid: int) -> str:
    """The array in text format. Booleans are 0 and 1 in SQLite, t and f in PostgreSQL. A parameter is an array of JSON."""
    if oid != BOOL_ARRAY:
        return array_text(array_values(text)) if text.startswith("[") else text
    return array_text([None if value is None else "t" if value in _TRUE else "f" for value in array_values(text)])


def _element(value: Value, oid: int) -> bytes:
    if value is None:
        return struct.pack(">i", -1)
    if oid in _PACKED:
        body = _PACKED[oid].pack(int(value))
    elif oid == 16:
        body = b"\1" if value in _TRUE else b"\0"
    else:
        body = str(value).encode()
    return struct.pack(">i", len(body)) + body
