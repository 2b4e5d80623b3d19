"""Tokens that the rules for queries of the catalogue change, and questions about their places. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import tokenize

_NO_TABLES_FOLLOW = {"SELECT", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "ON", "USING", "WITH", "VALUES", "BY"}


class MutableToken:
    """A token that a rule may change."""

    __slots__ = ("kind", "text", "upper")

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text
        self.upper = text.upper() if kind in ("word", "operator") else ""


def closing(parts: Sequence[MutableToken], opening: int) -> int:
    """The index of the bracket that closes the one at index `opening`. Raises SqlError 42601 if none does."""
    depth = 0
    for index in range(opening, len(parts)):
        depth += (parts[index].text in ("(", "[")) - (parts[index].text in (")", "]"))
        if depth == 0:
            return index
    raise SqlError("42601", "syntax error: a bracket is not closed")


def tokens_of(text: str) -> list[MutableToken]:
    return [MutableToken(token.kind, token.text) for token in tokenize(text)]


def arguments_of(parts: Sequence[MutableToken], opening: int) -> list[list[MutableToken]]:
    """The tokens of each argument in the brackets that open at an index."""
    arguments: list[list[MutableToken]] = [[]]
    depth = 0
    for part in parts[opening + 1 : closing(parts, opening)]:
        depth += (part.text in ("(", "[")) - (part.text in (")", "]"))
        if depth == 0 and part.text == ",":
            arguments.append([])
        else:
            arguments[-1].append(part)
    return arguments


def table_places(parts: Sequence[MutableToken]) -> set[int]:
    """The indexes of the tokens that stand where a table's name does: behind FROM, JOIN or a comma between tables."""
    places: set[int] = set()
    lists_tables = [False]
    """For each open bracket, whether a comma is between tables."""
    for index, part in enumerate(parts):
        before = parts[index - 1].upper if index else ""
        if (
            (before == "," and lists_tables[-1])
            or before == "JOIN"
            or (before == "FROM" and not (index > 1 and parts[index - 2].upper == "DISTINCT"))
        ):
            places.add(index)
        if part.text in ("(", "["):
            lists_tables.append(False)
        elif part.text in (")", "]"):
            lists_tables[-1:] = [] if len(lists_tables) > 1 else [False]
        elif part.upper == "FROM" or part.upper in _NO_TABLES_FOLLOW:
            lists_tables[-1] = part.upper == "FROM"
    return places


def type_at(parts: Sequence[MutableToken], start: int) -> tuple[str, int]:
    """(the type that begins at an index, the index after it). The type is in capitals, without modifiers: ``TEXT[]``."""
    words: list[str] = []
    at = start
    while at < len(parts) and parts[at].kind in ("word", "quoted") and len(words) < 4:
        word = parts[at].text.strip('"').upper()
        if words and word not in ("VARYING", "PRECISION", "WITH", "WITHOUT", "TIME", "ZONE"):
            break
        words.append(word)
        at += 1
    if at < len(parts) and parts[at].text == "(":
        at = closing(parts, at) + 1
    dimensions = ""
    while at + 1 < len(parts) and parts[at].text == "[" and parts[at + 1].text == "]":
        at += 2
        dimensions = "[]"
    if not words:
        raise SqlError("42601", "a type is missing after a cast")
    return " ".join(words) + dimensions, at
