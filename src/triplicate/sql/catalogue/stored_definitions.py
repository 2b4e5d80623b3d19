"""The texts of views and triggers in SQLite's schema, as the catalogue shows them. Pure."""

from __future__ import annotations

from triplicate.sql.core.brackets import closing
from triplicate.sql.core.lexer import Token, sqlite_tokens

_BEFORE, _INSTEAD = 2, 64
_TIMES = {"BEFORE": _BEFORE, "AFTER": 0, "INSTEAD": _INSTEAD}
_EVENTS = {"INSERT": 4, "DELETE": 8, "UPDATE": 16}
_FOR_EACH_ROW = 1


def view_text(sql: str) -> str | None:
    """The query of a CREATE VIEW, as it is stored; None for any other statement."""
    tokens = sqlite_tokens(sql)
    index = 0
    while index + 1 < len(tokens):
        if tokens[index].text == "(":
            index = closing(tokens, index)
        elif _upper(tokens[index]) == "AS":
            return sql[tokens[index + 1].start : tokens[-1].end]
        index += 1
    return None


def trigger_text(sql: str) -> str:
    """A CREATE TRIGGER without the words that only its statement needs: ``CREATE TRIGGER name AFTER INSERT ON t BEGIN … END``."""
    tokens = sqlite_tokens(sql)
    return f"CREATE TRIGGER {sql[tokens[_name(tokens)].start : tokens[-1].end]}"


def trigger_type(sql: str) -> int:
    """The bits of `tgtype` of a CREATE TRIGGER. Source: PostgreSQL 15, catalog/pg_trigger.h."""
    tokens = sqlite_tokens(sql)
    after = _name(tokens) + 1
    time = _upper(tokens[after])
    event = next(_EVENTS[_upper(token)] for token in tokens[after:] if _upper(token) in _EVENTS)
    return _FOR_EACH_ROW | _TIMES.get(time, _BEFORE) | event


def _name(tokens: list[Token]) -> int:
    """The index of a trigger's name, without its schema's."""
    at = next(index for index, token in enumerate(tokens) if _upper(token) == "TRIGGER") + 1
    at += 3 if [_upper(token) for token in tokens[at : at + 3]] == ["IF", "NOT", "EXISTS"] else 0
    return at + 2 if tokens[at + 1].text == "." else at


def _upper(token: Token) -> str:
    return token.text.upper() if token.kind == "word" else ""
