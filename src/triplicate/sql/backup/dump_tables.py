"""A table of a dump: CREATE TABLE, and what ``pg_dump`` writes about it behind the data, as one definition. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Statement, Token, statement_of
from triplicate.sql.pg.ddl.column_parser import ColumnParts, parse_column
from triplicate.sql.pg.ddl.definition_rewriter import rewrite_definition
from triplicate.sql.pg.ddl.parts import TextEdits, Tokens, closing, split, type_text
from triplicate.sql.pg.rewrite.reserved_words import quote_reserved

_CONSTRAINTS = ("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "EXCLUDE")


class DumpRefusal(NamedTuple):
    """A part of a dump that a database refuses.

    Args:
        line: of the file, from 1.
    """

    line: int
    reason: str


class Addition(NamedTuple):
    """A later statement on the table.

    Args:
        kind: ``constraint``, ``default`` or ``identity``.
        column: of a default or an identity. text: the constraint or the default.
    """

    line: int
    kind: str
    column: str
    text: str


def described(error: SqlError) -> str:
    return error.message if error.hint is None else f"{error.message} ({error.hint})"


def folded_name(token: Token) -> str:
    """The name that PostgreSQL reads: a word without quotes in small letters."""
    return (token.name or "") if token.kind == "quoted" else token.text.lower()


@dataclass(slots=True)
class DumpedTable:
    """One table.

    Args:
        line: of CREATE TABLE. statement: CREATE TABLE.
    """

    name: str
    line: int
    statement: Statement
    additions: list[Addition] = field(default_factory=list)

    def columns(self) -> dict[str, ColumnParts]:
        """The columns by name, without those that cannot be parsed."""
        found: dict[str, ColumnParts] = {}
        for item in self._items():
            if self._is_column(item):
                try:
                    found[folded_name(item[0])] = parse_column(item)
                except SqlError:
                    continue  # The whole definition is refused for the same reason.
        return found

    def types(self) -> dict[str, str]:
        """The types of the columns as they are written."""
        return {name: type_text(column.type_tokens) for name, column in self.columns().items()}

    def definition(self) -> str:
        """CREATE TABLE for SQLite. Raises SqlError: it is refused; `refusals` finds the lines."""
        return self._rewritten(self.additions)

    def refusals(self, error: SqlError) -> list[DumpRefusal]:
        """Where the table is refused: its columns one by one, or else the first statement with which it is.

        Args:
            error: of the whole definition.
        """
        try:
            self._rewritten(())
        except SqlError as alone:
            columns = [(self.line_at(item[0].start), self._refused_column(item)) for item in self._items() if self._is_column(item)]
            found = [DumpRefusal(line, reason) for line, reason in columns if reason]
            return found or [DumpRefusal(self.line, f"CREATE TABLE {self.name}: {described(alone)}")]
        # A key comes before the column that it makes a serial one.
        additions = sorted(self.additions, key=lambda one: one.kind == "identity")
        for count, addition in enumerate(additions, start=1):
            try:
                self._rewritten(additions[:count])
            except SqlError as with_it:
                return [DumpRefusal(addition.line, f"table {self.name}: {described(with_it)}")]
        return [DumpRefusal(self.line, f"CREATE TABLE {self.name}: {described(error)}")]

    def line_at(self, position: int) -> int:
        return self.line + self.statement.sql.count("\n", 0, position)

    def _refused_column(self, item: list[Token]) -> str:
        text = self.statement.sql[item[0].start : item[-1].end]
        try:
            rewrite_definition(statement_of(f"CREATE TABLE t (\n{text}\n)"))
        except SqlError as error:
            return f"column {item[0].text} of table {self.name}: {described(error)}"
        return ""

    def _body(self) -> tuple[Tokens, int]:
        """The tokens between the brackets, and the index of the closing one. Raises SqlError 42601."""
        tokens = self.statement.tokens
        opening = next((index for index, token in enumerate(tokens) if token.text == "("), len(tokens))
        end = closing(tokens, opening)
        return tokens[opening + 1 : end], end

    def _items(self) -> list[list[Token]]:
        try:
            return [item for item in split(self._body()[0]) if item]
        except SqlError:
            return []

    @staticmethod
    def _is_column(item: list[Token]) -> bool:
        return item[0].upper not in _CONSTRAINTS

    def _rewritten(self, additions: Sequence[Addition]) -> str:
        if not additions:
            return _for_sqlite(self.statement)
        edits, columns = TextEdits(self.statement.sql), self.columns()
        body, _ = self._body()
        constraints = [one.text for one in additions if one.kind == "constraint"]
        for addition in additions:
            if addition.kind == "constraint":
                continue
            column = columns.get(addition.column)
            if column is None:
                raise SqlError("42703", f'column "{addition.column}" of relation "{self.name}" does not exist')
            before = column.clause("DEFAULT")
            if before is not None:
                edits.remove(before.tokens)
            edits.insert(column.text_position(), addition.text)
        edits.insert(body[-1].end if body else 0, "".join(f",\n    {one}" for one in constraints))
        return _for_sqlite(statement_of(edits.text()))


def _for_sqlite(statement: Statement) -> str:
    return rewrite_definition(quote_reserved(statement)).text
