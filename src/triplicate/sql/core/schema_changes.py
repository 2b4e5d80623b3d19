"""The effect of a schema change on the names of tables and columns, for readers of the log that do not run it.

Row runs have the names of tables and columns of their time. So a reader that follows one table needs only the changes of names, not the
whole schema, and can begin in the middle of the log. SQLite's grammar of ALTER TABLE is small. SQLite has run every text before it was
logged, so the parser does not check texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

import apsw

from triplicate.errors import FormatError
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.lexer import Token, quote, sqlite_tokens

_CONSTRAINTS = frozenset(
    ("CONSTRAINT", "NOT", "NULL", "DEFAULT", "CHECK", "UNIQUE", "PRIMARY", "REFERENCES", "COLLATE", "GENERATED", "AS", "DEFERRABLE")
)
"""First words of column constraints. The type stands before the first of them."""


@dataclass(frozen=True, slots=True)
class TableCreated:
    table: str
    virtual: bool = False
    strict: bool = False


@dataclass(frozen=True, slots=True)
class TableDropped:
    table: str


@dataclass(frozen=True, slots=True)
class TableRenamed:
    table: str
    new_name: str


@dataclass(frozen=True, slots=True)
class ColumnAdded:
    table: str
    column: str
    default: Value = None
    """The value of the column in rows that existed before."""
    strict_default: tuple[Value] | None = None
    """The value in a STRICT table, where it may differ: a column of type ANY converts nothing there."""


@dataclass(frozen=True, slots=True)
class ColumnRenamed:
    table: str
    column: str
    new_name: str


@dataclass(frozen=True, slots=True)
class ColumnDropped:
    table: str
    column: str


TableChange = TableCreated | TableDropped | TableRenamed | ColumnAdded | ColumnRenamed | ColumnDropped


@lru_cache(maxsize=4096)
def fold(name: str) -> str:
    """A name as SQLite compares it: ASCII letters without case, all others as they are."""
    return name.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")


def table_change(sql: str) -> TableChange | None:
    """The table or column that a schema change of the log creates, drops or renames; None for any other change.

    Raises:
        FormatError: an unknown form of ALTER TABLE.
    """
    reader = _ColumnParser(sql)
    first = reader.word()
    if first == "ALTER" and reader.word() == "TABLE":
        return _altered(reader, reader.table())
    if first not in ("CREATE", "DROP"):
        return None
    virtual = reader.skip("VIRTUAL")
    if reader.word() != "TABLE":
        return None
    if reader.skip("IF"):
        reader.skip("NOT")
        reader.skip("EXISTS")
    return TableDropped(reader.table()) if first == "DROP" else TableCreated(reader.table(), virtual, reader.ends_with("STRICT"))


def dropped_view(sql: str) -> str | None:
    """The name of the view that a schema change drops; None for any other change."""
    reader = _ColumnParser(sql)
    if (reader.word(), reader.word()) != ("DROP", "VIEW"):
        return None
    if reader.skip("IF"):
        reader.skip("EXISTS")
    return reader.table()


def _altered(reader: _ColumnParser, table: str) -> TableChange | None:
    action = reader.word()
    if action == "RENAME" and reader.skip("TO"):
        return TableRenamed(table, reader.name())
    if action in ("ADD", "DROP") and reader.peek() in ("CONSTRAINT", "CHECK"):
        return None
    reader.skip("COLUMN")
    match action:
        case "RENAME":
            column = reader.name()
            reader.skip("TO")
            return ColumnRenamed(table, column, reader.name())
        case "ADD":
            return _added(table, reader.name(), reader)
        case "DROP":
            return ColumnDropped(table, reader.name())
        case "ALTER":
            return None  # NOT NULL was set or dropped: neither rows nor names change.
    raise FormatError(f"the log holds a schema change that this release does not know: {reader.sql:.200}")


class _ColumnParser:
    """Reads the tokens of one statement."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._tokens = sqlite_tokens(sql)
        self._place = 0

    def rest(self) -> Sequence[Token]:
        return self._tokens[self._place :]

    def peek(self) -> str:
        """The next token: a bare word in upper case, anything else as it is written; '' at the end."""
        return _upper(self._tokens[self._place]) if self._place < len(self._tokens) else ""

    def word(self) -> str:
        found = self.peek()
        self._place += 1
        return found

    def skip(self, word: str) -> bool:
        """Skip the next token if it is this word; whether it was."""
        if self.peek() != word:
            return False
        self._place += 1
        return True

    def table(self) -> str:
        """A table's name, which the name of its database may precede."""
        name = self.name()
        return self.name() if self.skip(".") else name

    def ends_with(self, option: str) -> bool:
        """Whether CREATE TABLE has an option after its columns."""
        options = takewhile(lambda token: token.text != ")", reversed(self._tokens))
        return any(_upper(token) == option for token in options)

    def name(self) -> str:
        if self._place >= len(self._tokens):
            raise FormatError(f"the log holds a schema change without a name: {self.sql:.200}")
        token = self._tokens[self._place]
        self._place += 1
        return _unquoted(token)


def _upper(token: Token) -> str:
    return token.text.upper() if token.kind == "word" else token.text


def _unquoted(token: Token) -> str:
    text = token.text
    if token.kind not in ("quoted", "string"):
        return text
    if text[0] == "[":
        return text[1:].removesuffix("]")
    return text[1:].removesuffix(text[0]).replace(text[0] * 2, text[0])


def _added(table: str, column: str, reader: _ColumnParser) -> ColumnAdded:
    """The value of an added column in existing rows. SQLite allows constants only, and converts them by the column's type.

    Raises:
        FormatError: the text has an unknown form.
    """
    rest = reader.rest()
    start = _constraint(rest, 0)
    declared = reader.sql[rest[0].start : rest[start - 1].end] if start else ""
    expression = None
    for place in range(start, len(rest)):
        # REFERENCES … ON DELETE SET DEFAULT is no value.
        if _upper(rest[place]) == "DEFAULT" and not _depth(rest, place) and _upper(rest[place - 1]) != "SET":
            expression = _expression(reader.sql, rest[place + 1 :])
    if expression is None:
        return ColumnAdded(table, column)
    default, strict = _converted(reader.sql, f"{declared} default {expression}", ""), None
    if start == 1 and _unquoted(rest[0]).upper() == "ANY":
        strict = _converted(reader.sql, f"{declared} default {expression}", "strict")
    same = strict is None or (type(strict), strict) == (type(default), default)
    return ColumnAdded(table, column, default, None if same else (strict,))


def _converted(sql: str, definition: str, options: str) -> Value:
    """The value of a column that is added with a default in an existing row."""
    scratch = apsw.Connection(":memory:")
    try:
        scratch.execute(f"create table z(x int) {options}; insert into z values(1)")
        scratch.execute(f"alter table z add column {quote('y')} {definition}")
        value: Value = scratch.execute("select y from z").fetchall()[0][0]
    except apsw.SQLError as error:
        if "non-constant default" not in str(error):
            raise FormatError(f"the default in a schema change of the log cannot be read ({error}): {sql:.200}") from error
        # SQLite accepted it because the table had no rows.
        return None
    finally:
        scratch.close()
    return value


def _constraint(rest: Sequence[Token], start: int) -> int:
    """Index of the first token from `start` on that begins a constraint, outside of parentheses; the number of tokens without one."""
    for place in range(start, len(rest)):
        word = _upper(rest[place])
        # Without ALWAYS it is part of a type's name.
        is_type = word == "GENERATED" and _upper(rest[min(place + 1, len(rest) - 1)]) != "ALWAYS"
        if word in _CONSTRAINTS and not is_type and not _depth(rest, place):
            return place
    return len(rest)


def _depth(rest: Sequence[Token], place: int) -> int:
    """Number of parentheses that are open before a token."""
    return sum((token.text == "(") - (token.text == ")") for token in rest[:place] if token.kind == "operator")


def _expression(sql: str, rest: Sequence[Token]) -> str:
    """The text after DEFAULT: up to the next constraint. The term may be NULL, and a number or a blob may be several tokens here."""
    first = next((place for place, token in enumerate(rest) if token.text not in ("+", "-")), 0)
    return sql[rest[0].start : rest[_constraint(rest, first + 1) - 1].end]
