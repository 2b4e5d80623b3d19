"""The uses of live tables in a query: each gets its rows as a parameter. Pure.

See `triplicate.sql.catalogue.live_tables`.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from triplicate.errors import SqlError
from triplicate.sql.catalogue.live_tables import FUNCTIONS, LIVE_TABLES
from triplicate.sql.core.interface import Value
from triplicate.sql.core.lexer import string_value
from triplicate.sql.pg.rewrite.mutable_token import MutableToken, closing, table_places
from triplicate.sql.pg.values import types

_ARGUMENTS = (types.TEXT, types.INT8, types.INT8, types.FLOAT8)
"""Types of the arguments of `triplicate_changes`: table, position, number of transactions, seconds to wait."""
_LEAST_ARGUMENTS = 2


class ClientParameter(NamedTuple):
    """The place of an argument among the client's parameters, from 1."""

    number: int


@dataclass(frozen=True, slots=True)
class LiveUse:
    """One use of a live table, with its arguments."""

    table: str
    arguments: tuple[Value | ClientParameter, ...] = ()

    @property
    def parameter_oids(self) -> dict[int, int]:
        """Maps the number of each parameter among the arguments to its type."""
        return {
            argument.number: oid for argument, oid in zip(self.arguments, _ARGUMENTS, strict=False) if isinstance(argument, ClientParameter)
        }

    def values(self, parameters: Sequence[Value]) -> list[Value]:
        """The arguments, given the client's parameters."""
        return [parameters[one.number - 1] if isinstance(one, ClientParameter) else one for one in self.arguments]


def live_uses(parts: Sequence[MutableToken], users: int, common: Container[str] = ()) -> tuple[list[MutableToken], tuple[LiveUse, ...]]:
    """(the tokens with a parameter for the rows of each use, the uses in the order of their parameters).

    `current_setting` gets the rows of pg_settings.

    Args:
        users: the number of the parameters that the session supplies already. They have the highest numbers.
        common: names of the common table expressions. They hide tables.

    Raises:
        SqlError: 42883, 22023, 0A000 for arguments that a function does not have.
    """
    first = max((int(part.text[1:]) for part in parts if part.kind == "parameter" and part.text[1:].isdigit()), default=0) + 1
    found: list[LiveUse] = []
    rewritten: list[MutableToken] = []

    def rows_of(use: LiveUse) -> MutableToken:
        if use not in found:
            found.append(use)
        return MutableToken("parameter", f"${first + found.index(use)}")

    places, index = table_places(parts), 0
    while index < len(parts):
        part = parts[index]
        rewritten.append(part)
        name = part.text.strip('"').lower()
        index += 1
        if part.upper == "CURRENT_SETTING" and index < len(parts) and parts[index].text == "(":
            rewritten[-1] = MutableToken("word", "pg_setting")
            rewritten += [MutableToken("operator", "("), rows_of(LiveUse("pg_settings")), MutableToken("operator", ",")]
            index += 1
            continue
        if part.kind not in ("word", "quoted") or name not in LIVE_TABLES or name in common or index - 1 not in places:
            continue
        arguments: tuple[Value | ClientParameter, ...] = ()
        if index < len(parts) and parts[index].text == "(":
            end = closing(parts, index)
            arguments = _arguments(name, parts[index + 1 : end])
            index = end + 1
        use = LiveUse(name, _checked(name, arguments))
        rewritten += [MutableToken("operator", "("), rows_of(use), MutableToken("operator", ")")]
    return rewritten, tuple(found)


def _checked(name: str, arguments: tuple[Value | ClientParameter, ...]) -> tuple[Value | ClientParameter, ...]:
    if name not in FUNCTIONS:
        if arguments:
            raise SqlError("42883", f"{name} is a table, and has no arguments")
    elif not _LEAST_ARGUMENTS <= len(arguments) <= len(_ARGUMENTS):
        raise SqlError(
            "42883",
            f"function {name} does not exist with {len(arguments)} arguments",
            hint=f"{name}(table or '*', position [, number of transactions [, seconds to wait]])",
        )
    return arguments


def _arguments(name: str, parts: Sequence[MutableToken]) -> tuple[Value | ClientParameter, ...]:
    found: list[Value | ClientParameter] = []
    at = 0
    while at < len(parts):
        sign = -1 if parts[at].text == "-" else 1
        at += sign < 0
        found.append(_argument(name, parts[at] if at < len(parts) else None, sign))
        at += 1
        while at + 1 < len(parts) and parts[at].text == "::":
            at += 2  # The arguments have their types.
        if at < len(parts) and parts[at].text != ",":
            raise _no_constant(name)
        at += 1
    return tuple(found)


def _argument(name: str, part: MutableToken | None, sign: int) -> Value | ClientParameter:
    if part is not None and part.kind == "string" and sign > 0:
        return string_value(part.text)
    if part is not None and part.kind == "parameter" and part.text[1:].isdigit() and sign > 0:
        return ClientParameter(int(part.text[1:]))
    if part is not None and part.kind == "number":
        return sign * (int(part.text) if part.text.isdigit() else float(part.text))
    if part is not None and part.upper == "NULL":
        return None
    raise _no_constant(name)


def _no_constant(name: str) -> SqlError:
    return SqlError("0A000", f"the arguments of {name} must be constants or parameters")
