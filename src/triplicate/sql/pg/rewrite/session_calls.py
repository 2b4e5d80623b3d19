"""``SELECT set_config(…), current_setting(…)``, which client libraries send at connect and the session answers. Pure.

The settings belong to the session, not to the engine. These functions are therefore recognized in a SELECT of nothing else. The engine
has `current_setting` in other queries, with only the values that all sessions share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.core.lexer import Statement, Token

_FUNCTIONS = {"CURRENT_SETTING": (1, 2), "SET_CONFIG": (3, 3)}


@dataclass(frozen=True, slots=True)
class Argument:
    """A constant, or with `parameter` (from 1) the number of a bound parameter."""

    constant: str | None = None
    parameter: int = 0


@dataclass(frozen=True, slots=True)
class SessionCall:
    """One call; `sets` distinguishes set_config from current_setting."""

    column: str
    sets: bool
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class SessionCalls:
    calls: tuple[SessionCall, ...]

    @property
    def columns(self) -> list[str]:
        return [call.column for call in self.calls]

    @property
    def parameters(self) -> int:
        """The number of parameters that the client binds."""
        return max((argument.parameter for call in self.calls for argument in call.arguments), default=0)


def session_calls(statement: Statement) -> SessionCalls | None:
    """The calls, if the statement is a SELECT of nothing else.

    Raises:
        SqlError: 0A000, set_config() is called in another query, as pg_dump does it first of all.
    """
    tokens = statement.tokens
    if statement.first_word not in ("SELECT", "WITH") or not any(token.upper in _FUNCTIONS for token in tokens):
        return None
    found = _calls(tokens) if statement.first_word == "SELECT" else None
    if found is None and any(token.upper == "SET_CONFIG" and after.text == "(" for token, after in pairwise(tokens)):
        raise SqlError(
            "0A000",
            "set_config() is not available in a query of anything else",
            hint="Write SET, or SELECT set_config(…) alone. For pg_dump use `triplicate database export`.",
        )
    return found


def _calls(tokens: Sequence[Token]) -> SessionCalls | None:
    calls: list[SessionCall] = []
    at = 1
    while True:
        parsed = _call(tokens, at)
        if parsed is None:
            return None
        call, at = parsed
        calls.append(call)
        if at == len(tokens):
            return SessionCalls(tuple(calls))
        if tokens[at].text != ",":
            return None
        at += 1


def _call(tokens: Sequence[Token], at: int) -> tuple[SessionCall, int] | None:
    """(one call with its alias, the index after it); None for any other tokens."""
    if at + 1 < len(tokens) and tokens[at].upper == "PG_CATALOG" and tokens[at + 1].text == ".":
        at += 2
    if at + 2 >= len(tokens) or tokens[at].upper not in _FUNCTIONS or tokens[at + 1].text != "(":
        return None
    function = tokens[at].upper
    arguments: list[Argument] = []
    at += 2
    while at < len(tokens):
        argument = _argument(tokens[at])
        if argument is None:
            return None
        arguments.append(argument)
        at += 1
        while at + 1 < len(tokens) and tokens[at].text == "::":
            at += 2  # The type of the cast is ignored, because the argument is text or a boolean.
        if at >= len(tokens) or tokens[at].text not in (",", ")"):
            return None
        at += 1
        if tokens[at - 1].text == ")":
            break
    least, most = _FUNCTIONS[function]
    if not least <= len(arguments) <= most:
        raise SqlError("42883", f"function {function.lower()} does not exist with {len(arguments)} arguments")
    column = function.lower()
    if at + 1 < len(tokens) and tokens[at].upper == "AS" and tokens[at + 1].name:
        column = tokens[at + 1].name or column
        at += 2
    elif at < len(tokens) and tokens[at].name and (at + 1 == len(tokens) or tokens[at + 1].text == ","):
        column = tokens[at].name or column
        at += 1
    return SessionCall(column, function == "SET_CONFIG", tuple(arguments)), at


def _argument(token: Token) -> Argument | None:
    if token.kind == "string" and token.text.startswith("'"):
        return Argument(token.text[1:-1].replace("''", "'"))
    if token.kind == "parameter" and token.text[1:].isdigit() and token.text != "$0":
        return Argument(parameter=int(token.text[1:]))
    if token.upper in ("TRUE", "FALSE"):
        return Argument(token.upper.lower())
    return Argument() if token.upper == "NULL" else None


def values_of(call: SessionCall, parameters: Sequence[Value]) -> list[str | None]:
    """The arguments of a call as text; None for NULL."""
    values: list[str | None] = []
    for argument in call.arguments:
        value = parameters[argument.parameter - 1] if argument.parameter else argument.constant
        values.append(None if value is None else value.decode() if isinstance(value, bytes) else str(value))
    return values


def is_true(text: str | None) -> bool:
    """Parse a boolean. Raises SqlError 22P02."""
    lowered = (text or "false").strip().lower()
    if lowered in ("t", "true", "y", "yes", "on", "1"):
        return True
    if lowered in ("f", "false", "n", "no", "off", "0"):
        return False
    raise SqlError("22P02", f'invalid input syntax for type boolean: "{text}"')
