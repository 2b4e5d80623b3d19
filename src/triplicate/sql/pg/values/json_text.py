"""JSON as text: its parts as they are written, and the form in which jsonb is stored. Pure.

Source: PostgreSQL 15 documentation, "JSON Types" and "JSON Functions and Operators".
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.pg.values.numeric_limits import decimal_of_text

_BLANKS = re.compile(r"[ \t\n\r]*")
_SURROGATES = re.compile("[\ud800-\udfff]")


def _refuse_constant(text: str) -> Any:
    raise ValueError(text)


_VALUES = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)


def json_part(value: Value, key: Value, *, is_jsonb: bool) -> str | None:
    """``value -> key``: the field of an object, or the element of an array, as it is written; None if there is none.

    Args:
        value: JSON as it is stored. key: a name, or an index; a negative one counts from the end.

    Raises:
        ValueError: it is not JSON.
    """
    text = value if isinstance(value, str) else str(value)
    at = _skip(text, 0)
    match text[at : at + 1], key:
        case "{", str():
            return _field(text, at, key)
        case "[", int():
            return _element(text, at, key)
        case (("{" | "["), _):
            return None
    # A scalar of jsonb counts as an array of one element.
    return text.strip() if is_jsonb and key in (0, -1) else None


def json_part_text(value: Value, key: Value, *, is_jsonb: bool) -> str | None:
    """``value ->> key``: as `json_part`, a string without its quotes, None for null."""
    part = json_part(value, key, is_jsonb=is_jsonb)
    if part is None or part == "null":
        return None
    return _checked(json.loads(part)) if part.startswith('"') else part


def normal_json(text: str) -> str:
    """JSON as jsonb is stored and printed: keys in the order of their lengths and then bytes, the last of equal keys, one blank after
    commas and colons.

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


def _normal(tree: Any) -> str:
    if isinstance(tree, dict):
        keys = sorted(tree, key=lambda key: (len(_checked(key).encode()), key.encode()))
        return "{" + ", ".join([f"{json.dumps(key, ensure_ascii=False)}: {_normal(tree[key])}" for key in keys]) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(_normal, tree)) + "]"
    if isinstance(tree, Decimal):
        return f"{tree:f}"
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


def _field(text: str, at: int, key: str) -> str | None:
    """The last field of the name, of the object that begins at `at`."""
    found: str | None = None
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise ValueError(f"a name is missing at character {at}")
        name, at = _VALUES.raw_decode(text, at)
        # All that is stored is JSON, so this is the colon.
        start = _skip(text, _skip(text, at) + 1)
        _, end = _VALUES.raw_decode(text, start)
        if name == key:
            found = text[start:end]
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
    return found


def _element(text: str, at: int, index: int) -> str | None:
    found: list[str] = []
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        _, end = _VALUES.raw_decode(text, at)
        found.append(text[at:end])
        if index == len(found) - 1:
            return found[index]
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
    return found[index] if index < 0 and -index <= len(found) else None
