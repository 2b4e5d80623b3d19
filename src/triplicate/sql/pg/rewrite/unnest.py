"""Rewrites ``INSERT … SELECT * FROM UNNEST(array, …)``, Django's form for many rows, with VALUES. Pure.

The arrays are constants, one per column. Their elements become untyped constants. The table's columns determine their types, as the casts
of the arrays would.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.core.lexer import Statement, Token, quote_string, statement_of
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.array_parameters import read_array


def unnest_as_values(statement: Statement) -> Statement:
    """The statement with VALUES in place of UNNEST; unchanged if it does not have this form.

    Raises:
        SqlError: 0A000 for an argument that is not a constant and for empty arrays, 22P02 for one that is not an array.
    """
    sql, tokens = statement.sql, statement.tokens
    if statement.first_word != "INSERT" or "unnest" not in sql.lower():
        return statement
    words = [token.upper for token in tokens]
    start = next((at for at in range(len(tokens)) if words[at : at + 5] == ["SELECT", "*", "FROM", "UNNEST", "("]), None)
    if start is None:
        return statement
    arguments, end = _arguments(tokens, start + 4)
    columns = [_elements(argument) for argument in arguments]
    rows = ", ".join("(" + ", ".join(_constant(value) for value in row) + ")" for row in zip_longest(*columns))
    if not rows:
        raise SqlError("0A000", "UNNEST of empty arrays is not available", hint="Send no statement where there are no rows.")
    return statement_of(f"{sql[: tokens[start].start]}VALUES {rows}{sql[tokens[end].end :]}")


def _arguments(tokens: Sequence[Token], opening: int) -> tuple[list[list[Token]], int]:
    arguments: list[list[Token]] = [[]]
    depth = 0
    for index in range(opening + 1, len(tokens)):
        text = tokens[index].text
        if depth == 0 and text == ")":
            return arguments, index
        depth += (text in ("(", "[")) - (text in (")", "]"))
        if depth == 0 and text == ",":
            arguments.append([])
        else:
            arguments[-1].append(tokens[index])
    raise SqlError("42601", "syntax error: the bracket after UNNEST is not closed")


def _elements(argument: Sequence[Token]) -> list[Value]:
    """The elements of a constant array as text."""
    strings = [token for token in argument if token.kind == "string"]
    casts = next((index for index, token in enumerate(argument) if token.text == "::"), len(argument))
    is_constant = len(strings) == 1 and all(token.text == "(" or token.kind == "string" for token in argument[:casts] if token.text != ")")
    if not is_constant:
        raise SqlError(
            "0A000",
            "UNNEST in an INSERT accepts constants such as '{1,2}'::integer[]",
            hint="Write VALUES (…), (…), or send a batch of INSERTs.",
        )
    return read_array(strings[0].string(), types.TEXT)


def _constant(value: Value) -> str:
    return "NULL" if value is None else quote_string(str(value))
