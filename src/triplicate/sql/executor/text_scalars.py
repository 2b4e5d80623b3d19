"""Scalar functions of texts, as PostgreSQL has them. All are deterministic."""

from __future__ import annotations

import hashlib
import re
from functools import partial
from typing import Any

from triplicate.errors import SqlError
from triplicate.sql.core.column_codec import Value
from triplicate.sql.executor.scalar_function import Scalar
from triplicate.sql.pg.values.conversions import FORMAT_ARGUMENT_MAX, FORMAT_FEW
from triplicate.sql.pg.values.json_text import json_part, json_part_text
from triplicate.sql.pg.values.patterns import glob_of_like
from triplicate.sql.pg.values.regular_expressions import regular_expression

_TEXT_MAX = 16 * 1024 * 1024
"""Upper bound on the characters of a result."""


def _substr(value: Any, start: Any, length: Any = None) -> Value:
    """The characters from position `start`, counted from 1. Positions before the first count towards the length."""
    if not isinstance(value, bytes):
        value = str(value)
    end = len(value) if length is None else int(start) - 1 + int(length)
    if length is not None and length < 0:
        raise SqlError("22011", "negative substring length not allowed")
    found: Value = value[max(int(start) - 1, 0) : max(end, 0)]
    return found


def _left(value: Any, count: Any) -> Value:
    text = str(value)
    end = int(count) if count >= 0 else max(len(text) + int(count), 0)
    return text[:end]


def _right(value: Any, count: Any) -> Value:
    text = str(value)
    start = max(len(text) - int(count), 0) if count >= 0 else -int(count)
    return text[start:]


def _pad(value: Any, length: Any, fill: Any = " ", *, left: bool) -> Value:
    text, fill, length = str(value), str(fill), max(int(length), 0)
    if length > _TEXT_MAX:
        raise SqlError("54000", f"a function may make {_TEXT_MAX} characters, this would be {length}")
    missing = length - len(text)
    if missing <= 0 or not fill:
        cut: str = text[:length]
        return cut
    padding: str = (fill * (missing // len(fill) + 1))[:missing]
    return padding + text if left else text + padding


def _repeat(value: Any, count: Any) -> Value:
    text = str(value)
    if len(text) * max(int(count), 0) > _TEXT_MAX:
        raise SqlError("54000", f"a function may make {_TEXT_MAX} characters, this would be {len(text) * int(count)}")
    return text * max(int(count), 0)


def _split_part(value: Any, delimiter: Any, place: Any) -> Value:
    if place == 0:
        raise SqlError("22023", "field position must not be zero")
    parts = str(value).split(str(delimiter)) if delimiter else [str(value)]
    index = int(place) - 1 if place > 0 else len(parts) + int(place)
    return parts[index] if 0 <= index < len(parts) else ""


def _replace(value: Any, wanted: Any, given: Any) -> Value:
    text, old, new = str(value), str(wanted), str(given)
    if not old:
        return text
    size = len(text) + text.count(old) * (len(new) - len(old))
    if size > _TEXT_MAX:
        raise SqlError("54000", f"a function may make {_TEXT_MAX} characters, this would be {size}")
    return text.replace(old, new)


def _translate(value: Any, wanted: Any, given: Any) -> Value:
    table: dict[int, str | None] = {}
    for index, character in enumerate(str(wanted)):
        table.setdefault(ord(character), str(given)[index] if index < len(str(given)) else None)
    return str(value).translate(table)


def _initcap(value: Any) -> Value:
    return re.sub("[0-9A-Za-z]+", lambda word: word[0].capitalize(), str(value))


_PLACE = re.compile(r"%(?:(\d+)\$)?(-?)(\d*)(.?)", re.DOTALL)


def format_text(pattern: Value, *arguments: Value) -> Value:
    """PostgreSQL's format(): ``%s`` with a position and a width, and ``%%``. NULL is an empty text."""
    if pattern is None:
        return None
    found, at, following, size, text = list[str](), 0, 0, 0, str(pattern)
    for match in _PLACE.finditer(text):
        place, left, width, kind = match.groups()
        found.append(text[at : match.start()])
        at = match.end()
        if kind == "%":
            found.append("%")
            continue
        if kind in ("I", "L"):
            raise SqlError("0A000", f"format() with %{kind} is not available", hint="Use %s.")
        if kind != "s" or place == "0":
            raise SqlError("22023", f"unrecognized format() type specifier {kind!r}", hint='For a single "%" use "%%".')
        following = int(place) if place else following + 1
        if following > len(arguments):
            raise SqlError("22023", "too few arguments for format()")
        argument = arguments[following - 1]
        shown = "" if argument is None else str(argument)
        if len(arguments) >= FORMAT_FEW and len(shown) > FORMAT_ARGUMENT_MAX:
            raise SqlError(
                "54000",
                f"format() takes texts of up to {FORMAT_ARGUMENT_MAX} characters where it has more than {FORMAT_FEW} arguments",
                hint="Join long texts with || or concat().",
            )
        if width and int(width) > _TEXT_MAX:
            raise SqlError("54000", f"a function may make {_TEXT_MAX} characters, this would be {width}")
        size += at - match.start() + max(len(shown), int(width or 0))
        if size > _TEXT_MAX:
            raise SqlError("54000", f"a function may make {_TEXT_MAX} characters, this would be more")
        found.append(shown.ljust(int(width or 0)) if left else shown.rjust(int(width or 0)))
    return "".join([*found, text[at:]])


def _chr(number: Any) -> Value:
    if not 0 < int(number) <= 0x10FFFF or 0xD800 <= int(number) < 0xE000:
        raise SqlError("22021" if number else "54000", f"requested character not valid: {number}")
    return chr(int(number))


def _to_hex(number: Any) -> Value:
    return f"{int(number) & (2**64 - 1):x}"


def _md5(value: Any) -> Value:
    data = value if isinstance(value, bytes) else str(value).encode()
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _matches(value: Any, pattern: Any, ignores_case: Any) -> Value:
    return int(regular_expression(str(pattern), bool(ignores_case)).matches(str(value)))


def _quote_literal(value: Any) -> Value:
    """A text as a string constant. PostgreSQL writes an escape string if there are backslashes."""
    text = str(value).replace("'", "''")
    return f"E'{text}'".replace("\\", "\\\\") if "\\" in text else f"'{text}'"


TEXT_SCALARS: dict[str, Scalar] = {
    "substr": Scalar(_substr, (2, 3)),
    "left": Scalar(_left, (2,)),
    "right": Scalar(_right, (2,)),
    "lpad": Scalar(partial(_pad, left=True), (2, 3)),
    "rpad": Scalar(partial(_pad, left=False), (2, 3)),
    "repeat": Scalar(_repeat, (2,)),
    "reverse": Scalar(lambda value: str(value)[::-1], (1,)),
    "split_part": Scalar(_split_part, (3,)),
    "replace": Scalar(_replace, (3,)),
    "translate": Scalar(_translate, (3,)),
    "initcap": Scalar(_initcap, (1,)),
    "chr": Scalar(_chr, (1,)),
    "ascii": Scalar(lambda value: ord(str(value)[0]) if value else 0, (1,)),
    "to_hex": Scalar(_to_hex, (1,)),
    "quote_literal": Scalar(_quote_literal, (1,)),
    "md5": Scalar(_md5, (1,)),
    "starts_with": Scalar(lambda value, prefix: int(str(value).startswith(str(prefix))), (2,)),
    "matches": Scalar(_matches, (3,)),
    "glob": Scalar(lambda pattern, escape: glob_of_like(str(pattern), str(escape)), (2,)),
    "json_part": Scalar(lambda value, key, is_jsonb: json_part(value, key, is_jsonb=bool(is_jsonb)), (3,)),
    "json_part_text": Scalar(lambda value, key, is_jsonb: json_part_text(value, key, is_jsonb=bool(is_jsonb)), (3,)),
}
"""By name without prefix. All return NULL where an argument is NULL."""
