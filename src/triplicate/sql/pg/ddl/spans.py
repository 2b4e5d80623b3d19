"""The expressions in definitions on an existing table. The types of its columns determine their translation. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Statement
from triplicate.sql.pg.ddl.column_parser import parse_column
from triplicate.sql.pg.ddl.parts import TextEdits, Tokens, at, closing, past_words, split
from triplicate.sql.pg.ddl.stored_expressions import StoredExpressions, expression_of


class ExpressionSpan(NamedTuple):
    """The characters of one expression."""

    start: int
    end: int
    is_condition: bool
    """Whether it is the condition of a CHECK."""


@dataclass(frozen=True, slots=True)
class Spans:
    """The expressions of a statement on an existing table."""

    table: str
    spans: tuple[ExpressionSpan, ...]
    is_binding: bool = True
    """Whether the expressions restrict the rows. Those of a plain index only determine which queries can use it."""
    added: tuple[tuple[str, str], ...] = ()
    """(name, declared type) of the column that the statement adds; empty without one."""

    def rewrite(self, sql: str, columns: Sequence[tuple[str, str]]) -> str:
        """The statement with the expressions translated.

        Args:
            sql: the statement. columns: (name, declared type) of the table's columns.

        Raises:
            SqlError: as `StoredExpressions.rewrite`.
        """
        edits, expressions = TextEdits(sql), StoredExpressions([*columns, *self.added])
        for span in self.spans:
            try:
                expressions.rewrite_span(span.start, span.end, edits, is_condition=span.is_condition)
            except SqlError as error:
                if self.is_binding or error.sqlstate != "0A000":
                    raise
        return edits.text()


def spans_of(statement: Statement) -> Spans | None:
    """The expressions of ALTER TABLE … ADD and CREATE INDEX; None for any other statement."""
    tokens = statement.tokens
    words = [token.upper for token in tokens]
    if words[:2] == ["ALTER", "TABLE"] and words[3:4] == ["ADD"]:
        at_check = 6 if words[4:5] == ["CONSTRAINT"] else 4
        if at(tokens, at_check).upper != "CHECK":
            return _added(tokens)
        inner = expression_of(tokens[at_check:])
        return Spans(tokens[2].name or "", (ExpressionSpan(inner[0].end, inner[-1].start, True),))
    if words[:1] != ["CREATE"] or "INDEX" not in words[1:3] or "ON" not in words:
        return None
    on = words.index("ON")
    if at(tokens, on + 2).text != "(":
        return None
    end = closing(tokens, on + 2)
    parts = map(_without_order, split(tokens[on + 3 : end]))
    spans = [ExpressionSpan(part[0].start, part[-1].end, False) for part in parts if len(part) > 1]
    if at(tokens, end + 1).upper == "WHERE" and end + 2 < len(tokens):
        spans.append(ExpressionSpan(tokens[end + 2].start, tokens[-1].end, False))
    return Spans(tokens[on + 1].name or "", tuple(spans), words[1] == "UNIQUE")


def _added(tokens: Tokens) -> Spans | None:
    start = past_words(tokens, past_words(tokens, 4, "COLUMN"), "IF", "NOT", "EXISTS")
    if at(tokens, start).upper in ("CONSTRAINT", "UNIQUE", "FOREIGN", "PRIMARY"):
        return None
    column = parse_column(tokens[start:])
    expressions = [(expression_of(clause.tokens), clause.kind == "CHECK") for clause in column.clauses if clause.kind in ("CHECK", "AS")]
    spans = tuple(ExpressionSpan(inner[0].end, inner[-1].start, is_condition) for inner, is_condition in expressions)
    return Spans(tokens[2].name or "", spans, added=((column.name, column.declared),))


def _without_order(part: Tokens) -> Tokens:
    """An element of an index without its order and collation."""
    while len(part) > 1 and (part[-1].upper in ("ASC", "DESC") or part[-2].upper == "COLLATE"):
        part = part[:-1] if part[-1].upper in ("ASC", "DESC") else part[:-2]
    return part
