"""JSON as text: its parts as they are written, and the form in which jsonb is stored. Pure.

Source: PostgreSQL 15 documentation, "JSON Types" and "JSON Functions and Operators".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeVar

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.pg.values.numeric_limits import decimal_of_text

T = TypeVar("T")

_BLANKS = re.compile(r"[ \t\n\r]*")
_SURROGATES = re.compile("[\ud800-\udfff]")


def _refuse_constant(text: str) -> Any:
    raise ValueError(text)


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


_VALUES = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_refuse_constant)
_KEPT = 16
_KEPT_LENGTH_MAX = 64 * 1024
"""Longer texts are read for each use: those that are kept take up to some ten times their length."""


def _kept(read: Callable[[str], T]) -> Callable[[str], T]:
    """`read`, which remembers the last texts: a query asks for many fields of one text, row by row."""
    remembered = lru_cache(_KEPT)(read)
    return lambda text: remembered(text) if len(text) <= _KEPT_LENGTH_MAX else read(text)


def json_part(value: Value, key: Value, *, is_jsonb: bool) -> str | None:
    """``value -> key``: the field of an object, or the element of an array, as it is written; None if there is none.

    Args:
        value: JSON as it is stored. key: a name, or an index; a negative one counts from the end.

    Raises:
        ValueError: it is not JSON.
    """
    text = value if isinstance(value, str) else number_text(value) if isinstance(value, float) else str(value)
    match _parts(text), key:
        case dict() as fields, str():
            return fields.get(key)
        case list() as elements, int():
            return elements[key] if -len(elements) <= key < len(elements) else None
        case None, (0 | -1) if is_jsonb:
            # A scalar of jsonb counts as an array of one element.
            return text.strip()
    return None


def json_part_text(value: Value, key: Value, *, is_jsonb: bool) -> str | None:
    """``value ->> key``: as `json_part`, a string without its quotes, None for null."""
    text = value if isinstance(value, str) else str(value)
    match _value(text), key:
        case dict() as fields, str():
            found = fields.get(key)
        case list() as elements, int():
            found = elements[key] if -len(elements) <= key < len(elements) else None
        case ((dict() | list()), _):
            return None
        case found, (0 | -1) if is_jsonb:
            pass
        case _:
            return None
    match found:
        case None | _Number():
            return found
        case bool():
            return "true" if found else "false"
        case str():
            return _checked(found)
    return json_part(text, key, is_jsonb=is_jsonb)


def normal_json(text: str) -> str:
    """JSON as jsonb is stored and printed: keys in the order of their lengths and then bytes, the last of equal keys, one blank after
    commas and colons, no zeros at the end of a number. So equal values have one text, by which SQLite compares them.

    Raises:
        ValueError: it is not JSON. RecursionError: it is nested too deeply. SqlError: 22003 for a number with more digits than a numeric
            may have, 22P05 and 22P02 for characters that no text can hold.
    """
    tree = json.loads(text, parse_float=decimal_of_text, parse_int=decimal_of_text, parse_constant=_refuse_constant)
    return _normal(tree)


def json_number(text: str) -> Decimal | None:
    """The number of JSON that is only a number."""
    stripped = text.strip()
    return decimal_of_text(stripped) if stripped[:1] in "-0123456789" and stripped else None


def number_text(number: Decimal | float) -> str:
    """A number as jsonb has it: equal ones have one text."""
    text = f"{Decimal(repr(number)) if isinstance(number, float) else number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _normal(tree: Any) -> str:
    if isinstance(tree, dict):
        keys = sorted(tree, key=lambda key: (len(_checked(key).encode()), key.encode()))
        return "{" + ", ".join([f"{json.dumps(key, ensure_ascii=False)}: {_normal(tree[key])}" for key in keys]) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(_normal, tree)) + "]"
    if isinstance(tree, Decimal):
        return number_text(tree)
    return json.dumps(_checked(tree) if isinstance(tree, str) else tree, ensure_ascii=False)


def _checked(text: str) -> str:
    """A string of JSON that becomes text. Raises SqlError 22P05, 22P02."""
    if "\0" in text:
        raise SqlError("22P05", "unsupported Unicode escape sequence", detail=r"\u0000 cannot be converted to text.")
    if _SURROGATES.search(text):
        detail = "Unicode high surrogate must be followed by a low surrogate, and none may stand alone."
        raise SqlError("22P02", "invalid input syntax for type json", detail=detail)
    return text


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found is not None else at


@_kept
def _value(text: str) -> Any:
    return _VALUES.decode(text)


@_kept
def _parts(text: str) -> dict[str, str] | list[str] | None:
    """The parts of an object or an array as they are written, the last of fields of one name; None for a scalar."""
    at = _skip(text, 0)
    opening = text[at : at + 1]
    if opening not in ("{", "["):
        return None
    fields, elements, name = dict[str, str](), list[str](), ""
    at = _skip(text, at + 1)
    while text[at : at + 1] not in ("}", "]"):
        if opening == "{":
            name, at = _VALUES.raw_decode(text, at)
            # All that is stored is JSON, so this is the colon.
            at = _skip(text, _skip(text, at) + 1)
        _, end = _VALUES.raw_decode(text, at)
        if opening == "{":
            fields[name] = text[at:end]
        else:
            elements.append(text[at:end])
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
    return fields if opening == "{" else elements
