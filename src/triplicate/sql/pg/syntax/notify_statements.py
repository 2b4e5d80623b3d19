"""The grammar of LISTEN, UNLISTEN and NOTIFY, and of ``SELECT pg_notify(channel, payload)``. Pure.

Source: PostgreSQL 15 documentation, "LISTEN", "UNLISTEN", "NOTIFY".
"""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Statement, Token
from triplicate.sql.core.notifications import CHANNEL_BYTES_MAX, Notification, checked_channel, checked_notification
from triplicate.sql.pg.syntax.token_cursor import NotUnderstood, TokenCursor, folded


@dataclass(frozen=True, slots=True)
class Listen:
    channel: str


@dataclass(frozen=True, slots=True)
class Unlisten:
    channel: str | None
    """None for all channels."""


@dataclass(frozen=True, slots=True)
class NotifyStatement:
    notification: Notification


@dataclass(frozen=True, slots=True)
class NotifyCall:
    """``SELECT pg_notify(channel, payload)``. Each argument is a constant, NULL, or the number of a parameter."""

    column: str
    arguments: tuple[str | int | None, ...]

    @property
    def parameters(self) -> int:
        """The number of parameters that the client binds."""
        return max((argument for argument in self.arguments if isinstance(argument, int)), default=0)


def parse_listening(statement: Statement) -> Listen | Unlisten | NotifyStatement:
    """Parse one of the statements.

    Raises:
        SqlError: 42601 for a syntax error; 22023 and 42939 as `checked_notification`.
    """
    cursor = TokenCursor(statement.tokens, len(statement.sql))
    try:
        return _parsed(cursor)
    except NotUnderstood as error:
        token = error.token
        at = "at end of input" if token.kind == "end" else f'at or near "{token.text}"'
        raise SqlError("42601", f"syntax error {at}", position=token.start + 1) from None


def _parsed(cursor: TokenCursor) -> Listen | Unlisten | NotifyStatement:
    command = cursor.advance().upper
    if command == "UNLISTEN" and cursor.accept("*"):
        return _whole(cursor, Unlisten(None))
    # As in PostgreSQL, a name in a statement is cut to the length that names have. The argument of a function is not.
    channel = folded(cursor.identifier()).encode()[:CHANNEL_BYTES_MAX].decode(errors="ignore")
    if command == "LISTEN":
        return _whole(cursor, Listen(checked_channel(channel)))
    if command == "UNLISTEN":
        return _whole(cursor, Unlisten(checked_channel(channel)))
    payload = ""
    if cursor.accept(","):
        if cursor.token.kind != "string":
            raise cursor.not_understood()
        payload = cursor.advance().string()
    return _whole(cursor, NotifyStatement(checked_notification(channel, payload)))


def _whole(cursor: TokenCursor, parsed: Listen | Unlisten | NotifyStatement) -> Listen | Unlisten | NotifyStatement:
    if cursor.token.kind != "end":
        raise cursor.not_understood()
    return parsed


def notify_call(statement: Statement) -> NotifyCall | None:
    """The call, if the statement is a SELECT of nothing else. In any other query pg_notify is refused."""
    tokens = [token for token in statement.tokens if token.upper != "PG_CATALOG"]
    tokens = [token for index, token in enumerate(tokens) if token.text != "." or index != 1]
    words = [token.upper for token in tokens[:3]]
    if words != ["SELECT", "PG_NOTIFY", "("]:
        return None
    arguments: list[str | int | None] = []
    at = 3
    while at < len(tokens) and len(arguments) < 2:
        argument = _argument(tokens[at])
        if isinstance(argument, Token):
            return None
        arguments.append(argument)
        at += 1
        while at + 1 < len(tokens) and tokens[at].text == "::":
            at += 2  # The arguments are text in any case.
        if at >= len(tokens) or tokens[at].text != ("," if len(arguments) == 1 else ")"):
            return None
        at += 1
    rest = tokens[at:]
    if rest and rest[0].upper == "AS":
        rest = rest[1:]
    if len(arguments) != 2 or len(rest) > 1 or (rest and rest[0].name is None):
        return None
    return NotifyCall(folded(rest[0]) if rest else "pg_notify", tuple(arguments))


def _argument(token: Token) -> str | int | Token | None:
    """The argument that a token stands for; the token itself for any other expression."""
    if token.kind == "string":
        return token.string()
    if token.kind == "parameter" and token.text[1:].isdigit():
        return int(token.text[1:])
    return None if token.upper == "NULL" else token
