"""Names of the results of queries of the catalogue, as PostgreSQL gives them to expressions without an alias. Pure.

Source: PostgreSQL 15, `FigureColname`.
"""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.sql.pg.rewrite.catalogue_types import CatalogueToken, main_select, select_items
from triplicate.sql.pg.rewrite.mutable_token import MutableToken, closing, type_at

_UNNAMED = "?column?"
_TYPES = {
    "INT": "int4", "INTEGER": "int4", "BIGINT": "int8", "SMALLINT": "int2", "BOOLEAN": "bool", "CHARACTER VARYING": "varchar",
    "CHARACTER": "bpchar", "DOUBLE PRECISION": "float8", "REAL": "float4", "DECIMAL": "numeric",
    "TIMESTAMP WITH TIME ZONE": "timestamptz", "TIMESTAMP WITHOUT TIME ZONE": "timestamp",
}  # fmt: skip
"""The names of types that have several."""
_CONSTANTS = {"NULL", "TRUE", "FALSE"}
_NO_ALIAS = _CONSTANTS | {"END"}
_NO_ALIAS_AFTER = {
    "NOT",
    "AND",
    "OR",
    "IS",
    "IN",
    "LIKE",
    "ILIKE",
    "BETWEEN",
    "COLLATE",
    "ANY",
    "ALL",
    "SOME",
    "FROM",
    "SELECT",
    "ZONE",
    ".",
}
_BEHIND_A_CALL = {"FILTER", "OVER", "WITHIN", "GROUP"}
_Named = tuple[str, bool]
"""(the name, whether it stays if the expression is the operand of a cast)."""


def result_names(parts: Sequence[MutableToken]) -> tuple[str, ...]:
    """The name of each item of the outer select list; empty if the list contains a star."""
    items = select_items(parts, main_select(parts))
    if any(item and item[-1].text == "*" for item in items):
        return ()
    return tuple(_item_name(item)[0] for item in items)


def _item_name(item: Sequence[MutableToken]) -> _Named:
    alias = _alias(item)
    return _named(item) if alias is None else (_identifier(alias), True)


def _alias(item: Sequence[MutableToken]) -> MutableToken | None:
    if len(item) < 2 or item[-1].kind not in ("word", "quoted") or item[-1].upper in _NO_ALIAS:
        return None
    before = item[-2]
    if before.upper == "AS":
        return item[-1]
    if before.upper in _NO_ALIAS_AFTER or (before.kind == "operator" and before.text not in (")", "]")):
        return None
    cast = max((index for index, part in enumerate(item) if part.text == "::"), default=None)
    ends_with_type = cast is not None and type_at(item, cast + 1)[1] == len(item)
    return None if ends_with_type else item[-1]


def _named(item: Sequence[MutableToken]) -> _Named:
    (name, stays), at = _operand(item)
    while at < len(item):
        part = item[at]
        if part.text == "[":
            at = closing(item, at) + 1
        elif part.text == "." and at + 1 < len(item):
            name, stays, at = _identifier(item[at + 1]), True, at + 2
        elif part.text == "::":
            word, at = type_at(item, at + 1)
            name = name if stays else _type_name(word)
        elif part.upper == "COLLATE":
            at += 2
        else:
            return _UNNAMED, False
    return name, stays


def _operand(item: Sequence[MutableToken]) -> tuple[_Named, int]:
    """(the name of the operand with which an expression begins, the index behind it)."""
    first = item[0] if item else MutableToken("operator", "")
    opens = len(item) > 1 and item[1].text in ("(", "[")
    end = closing(item, 1) + 1 if opens else 1
    match first.upper:
        case "(":
            end = closing(item, 0) + 1
            inside = item[1 : end - 1]
            is_query = inside[:1] and inside[0].upper == "SELECT"
            return (_item_name(select_items(inside, 0)[0]) if is_query else _named(inside)), end
        case "CASE":
            return _case(item)
        case "CAST" if opens:
            inside = item[2 : end - 1]
            at = max((index for index, part in enumerate(inside) if part.upper == "AS"), default=len(inside))
            name, stays = _named(inside[:at])
            return ((name, True) if stays else (_type_name(type_at(inside, at + 1)[0]), False)), end
    if first.kind not in ("word", "quoted") or first.upper in _CONSTANTS or first.upper == "NOT":
        return (_UNNAMED, False), 1
    at = 0
    while at + 2 < len(item) and item[at + 1].text == "." and item[at + 2].kind in ("word", "quoted"):
        at += 2
    name = _identifier(item[at])
    at += 1
    is_array = first.upper == "ARRAY"
    while at < len(item) and (item[at].text == "(" or (is_array and item[at].text == "[") or item[at].upper in _BEHIND_A_CALL):
        at = closing(item, at) + 1 if item[at].kind == "operator" else at + 1
        is_array = False
    return (name, True), at


def _case(item: Sequence[MutableToken]) -> tuple[_Named, int]:
    """Of CASE … END with which an expression begins: it has the name of its ELSE, where that is a column or a call."""
    depth, otherwise = 0, 0
    for index, part in enumerate(item):
        depth += (part.upper == "CASE" or part.text in ("(", "[")) - (part.upper == "END" or part.text in (")", "]"))
        if part.upper == "ELSE" and depth == 1:
            otherwise = index
        if depth == 0:
            name, stays = _named(item[otherwise + 1 : index]) if otherwise else ("", False)
            return ((name, True) if stays else ("case", False)), index + 1
    return (_UNNAMED, False), len(item)


def _identifier(part: CatalogueToken) -> str:
    return part.text[1:-1].replace('""', '"') if part.kind == "quoted" else part.text.lower()


def _type_name(word: str) -> str:
    word = word.removesuffix("[]")
    return _TYPES.get(word, word.split()[0].lower() if word else _UNNAMED)
