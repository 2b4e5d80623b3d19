"""Brackets and lists in the tokens of a definition. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.sql.core.lexer import Token


def closing(tokens: Sequence[Token], opening: int) -> int:
    """Index of the token that closes the bracket at index `opening`; of the last token if none does."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += (tokens[index].text == "(") - (tokens[index].text == ")")
        if depth == 0:
            return index
    return len(tokens) - 1


def items(tokens: Sequence[Token], opening: int) -> list[list[Token]]:
    """The items of the bracket at index `opening`, which are separated by commas."""
    items: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[opening + 1 : closing(tokens, opening)]:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text == ",":
            items.append([])
        else:
            items[-1].append(token)
    return items
