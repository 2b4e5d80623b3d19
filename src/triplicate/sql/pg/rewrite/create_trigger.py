"""CREATE TRIGGER in SQLite's form: its condition and statements are stored in SQLite's words, with PostgreSQL's meaning. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Statement, statement_of
from triplicate.sql.pg.ddl.parts import TextEdits, Tokens, at, refuse
from triplicate.sql.pg.rewrite.reserved_words import quote_reserved
from triplicate.sql.pg.translate.target_context import TargetContext
from triplicate.sql.pg.translate.translation import ColumnsByTable, KeysByTable, translate

_MARK = "/* translated 1 */"
"""Stands behind BEGIN in a stored text, with the version of the form."""
_MARKED = re.compile(r"\s*/\* translated [0-9]+ \*/")
_EVENTS = {"INSERT": ("new",), "DELETE": ("old",), "UPDATE": ("new", "old")}
_HEAD = "SELECT "


class _Part(NamedTuple):
    """A statement of a trigger, and the place of its text. The text of the condition is a SELECT of it without the first `left_out`
    characters."""

    start: int
    end: int
    statement: Statement
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class CreateTrigger:
    """The parts of a CREATE TRIGGER. `body` is the place behind BEGIN."""

    text: str
    table: str
    rows: tuple[str, ...]
    """``new``, ``old`` or both."""
    body: int
    parts: tuple[_Part, ...]

    @property
    def queries(self) -> tuple[Statement, ...]:
        return tuple(part.statement for part in self.parts)

    def stored(self, tables: ColumnsByTable, keys: KeysByTable | None) -> str:
        """The statement for SQLite. A part that the grammar does not cover stays in SQLite's words.

        Args:
            tables, keys: of the trigger's table and of those that the parts name, as for `translate`.

        Raises:
            SqlError: 42P02 for a parameter, 0A000 for a value of the session; and as `translate`.
        """
        edits = TextEdits(self.text)
        edits.insert(self.body, f" {_MARK}")
        outer = tuple((row, self.table) for row in self.rows)
        for part in self.parts:
            translation = translate(part.statement, tables, (), keys, TargetContext.TRIGGER, outer=outer)
            if translation.parameter_oids:
                raise SqlError("42P02", "there is no parameter $1 in a trigger", hint="Write the value into the statement.")
            if translation.supplied:
                raise refuse("a value of the session in a trigger", "store it by the statement that changes the row")
            text = translation.sql if translation.is_understood else part.statement.sql
            edits.replace(part.start, part.end, text[part.left_out :])
        return edits.text()


def trigger_parts(statement: Statement) -> CreateTrigger | None:
    """The parts of a CREATE TRIGGER; None for any other statement, and for one that is already in SQLite's words."""
    sql, tokens = statement.sql, [token for token in statement.tokens if token.text != ";" or token is not statement.tokens[-1]]
    words = [token.upper for token in tokens]
    if words[:2] != ["CREATE", "TRIGGER"] or words[-1:] != ["END"]:
        return None
    # A name may be any word, so the event is searched for after it.
    event = next((index for index in range(3, len(words)) if words[index] in _EVENTS), len(words))
    on = next((index for index in range(event, len(words)) if words[index] == "ON"), len(words))
    begin = next((index for index in range(on, len(words)) if words[index] == "BEGIN"), len(words))
    table = on + 3 if at(tokens, on + 2).text == "." else on + 1
    if begin == len(words) or at(tokens, table).name is None or _MARKED.match(sql, tokens[begin].end) is not None:
        return None
    parts = [_part(sql, body) for body in _bodies(tokens[begin + 1 : -1])]
    when = next((index for index in range(table, begin) if words[index] == "WHEN"), begin)
    if when + 1 < begin:
        parts.insert(0, _part(sql, tokens[when + 1 : begin], _HEAD))
    return CreateTrigger(sql, tokens[table].name or "", _EVENTS[words[event]], tokens[begin].end, tuple(parts))


def _part(sql: str, tokens: Tokens, head: str = "") -> _Part:
    start, end = tokens[0].start, tokens[-1].end
    return _Part(start, end, quote_reserved(statement_of(head + sql[start:end])), len(head))


def _bodies(tokens: Tokens) -> list[Tokens]:
    """The statements between BEGIN and END."""
    bodies: list[Tokens] = []
    begun = 0
    for index, token in enumerate(tokens):
        if token.text == ";":
            if index > begun:
                bodies.append(tokens[begun:index])
            begun = index + 1
    return bodies
