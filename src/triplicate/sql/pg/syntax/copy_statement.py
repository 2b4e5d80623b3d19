"""The grammar of COPY, with the options of PostgreSQL 15 in both of their forms, and ACTION, which is ours. Pure.

Source: PostgreSQL 15 documentation, "COPY"; ``ProcessCopyOptions`` for the checks of the options.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeVar

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Statement, quote
from triplicate.sql.pg.syntax.token_cursor import NotUnderstood, TokenCursor, folded

_NO_DELIMITERS = "\\.abcdefghijklmnopqrstuvwxyz0123456789"
_FILES = "Use COPY … FROM STDIN or TO STDOUT; psql's \\copy reads and writes files of the client."
Choice = TypeVar("Choice", bound=Enum)
_TRUE, _FALSE = ("true", "on", "1"), ("false", "off", "0")


class CopyFormat(Enum):
    TEXT = "text"
    CSV = "csv"
    BINARY = "binary"


class CopyAction(Enum):
    """The change that COPY FROM makes for each row of the data."""

    INSERT = "insert"
    UPSERT = "upsert"
    """INSERT, or UPDATE of the row with the same primary key."""
    DELETE = "delete"
    """The data have the columns of the primary key."""


class CopyHeader(Enum):
    NONE = "none"
    LINE = "line"
    MATCH = "match"
    """The names in the first line must be those of the columns."""


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """The options of one COPY, with the defaults of its format."""

    format: CopyFormat = CopyFormat.TEXT
    delimiter: str = "\t"
    null: str = "\\N"
    header: CopyHeader = CopyHeader.NONE
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] | None = ()
    """Columns that are always quoted; None for all."""
    force_not_null: tuple[str, ...] = ()
    force_null: tuple[str, ...] = ()
    action: CopyAction = CopyAction.INSERT


@dataclass(frozen=True, slots=True)
class CopyStatement:
    """One COPY FROM STDIN or COPY TO STDOUT."""

    is_from: bool
    table: str
    """Name of the table without its schema; empty for a query."""
    target: str
    """The table in a statement: quoted, with its schema."""
    columns: tuple[str, ...] | None
    """None without a list of columns."""
    query: str
    """Text of the query of COPY TO; empty for a table."""
    options: CopyOptions = field(default_factory=CopyOptions)


def parse_copy(statement: Statement) -> CopyStatement:
    """Parse a COPY statement.

    Raises:
        SqlError: 42601 for a syntax error and for options that contradict each other, 0A000 for a server's file, a program, a WHERE clause
            and an encoding other than UTF-8, 22023 for an invalid value of an option.
    """
    cursor = TokenCursor(statement.tokens, len(statement.sql))
    try:
        return _CopyParser(cursor, statement.sql).parse()
    except NotUnderstood as error:
        token = error.token
        at = "at end of input" if token.kind == "end" else f'at or near "{token.text}"'
        raise SqlError("42601", f"syntax error {at}", position=token.start + 1) from None


class _CopyParser:
    def __init__(self, cursor: TokenCursor, sql: str) -> None:
        self._cursor = cursor
        self._sql = sql
        self._given: dict[str, str | tuple[str, ...] | None] = {}
        """The options by PostgreSQL's name. An empty text stands for an option without a value; None for ``*``."""

    def parse(self) -> CopyStatement:
        cursor = self._cursor
        cursor.expect("COPY")
        if cursor.token.upper == "(":
            query = self._query()
            cursor.expect("TO")
            self._end_point()
            return CopyStatement(False, "", "", None, query, self._options(is_from=False))
        if cursor.token.upper == "BINARY" and cursor.ahead().kind in ("word", "quoted") and cursor.ahead().upper not in ("FROM", "TO"):
            cursor.advance()
            self._given["format"] = "binary"
        name = cursor.dotted()
        columns = tuple(self._columns()) if cursor.token.upper == "(" else None
        is_from = cursor.accept("FROM")
        if not is_from:
            cursor.expect("TO")
        self._end_point()
        options = self._options(is_from=is_from)
        return CopyStatement(is_from, name.last, ".".join(map(quote, name.parts)), columns, "", options)

    def _query(self) -> str:
        cursor = self._cursor
        start, depth = cursor.advance().end, 1
        while True:
            token = cursor.token
            if token.kind == "end":
                raise cursor.not_understood()
            depth += (token.upper == "(") - (token.upper == ")")
            if depth == 0:
                cursor.advance()
                return self._sql[start : token.start].strip()
            cursor.advance()

    def _columns(self) -> list[str]:
        cursor = self._cursor
        cursor.expect("(")
        names = [folded(cursor.identifier())]
        while cursor.accept(","):
            names.append(folded(cursor.identifier()))
        cursor.expect(")")
        return names

    def _end_point(self) -> None:
        cursor = self._cursor
        if cursor.accept("STDIN") or cursor.accept("STDOUT"):
            return
        if cursor.accept("PROGRAM") or cursor.token.kind == "string":
            raise SqlError("0A000", "COPY from or to a file or a program of the server is not available", hint=_FILES)
        raise cursor.not_understood()

    # Options.

    def _options(self, *, is_from: bool) -> CopyOptions:
        cursor = self._cursor
        if cursor.token.upper in ("USING", "DELIMITERS"):
            cursor.accept("USING")
            cursor.expect("DELIMITERS")
            self._give("delimiter", self._string())
        cursor.accept("WITH")
        if cursor.accept("("):
            self._option()
            while cursor.accept(","):
                self._option()
            cursor.expect(")")
        else:
            while self._old_option():
                pass
        if cursor.token.upper == "WHERE":
            if not is_from:
                raise cursor.not_understood()
            raise SqlError(
                "0A000",
                "WHERE is not supported in COPY FROM",
                hint="COPY into another table, and select from it with INSERT … SELECT … WHERE.",
            )
        cursor.accept(";")
        if cursor.token.kind != "end":
            raise cursor.not_understood()
        return _checked(self._given, is_from=is_from)

    def _give(self, name: str, value: str | tuple[str, ...] | None) -> None:
        if name in self._given:
            raise SqlError("42601", "conflicting or redundant options")
        self._given[name] = value

    def _string(self) -> str:
        if self._cursor.token.kind != "string":
            raise self._cursor.not_understood()
        return self._cursor.advance().string()

    def _option(self) -> None:
        cursor = self._cursor
        name = folded(cursor.identifier())
        token = cursor.token
        if name in ("force_quote", "force_not_null", "force_null"):
            if name == "force_quote" and cursor.accept("*"):
                self._give(name, None)
            elif token.upper == "(":
                self._give(name, tuple(self._columns()))
            else:
                raise SqlError("22023", f'argument to option "{name}" must be a list of column names', position=token.start + 1)
            return
        if name not in ("format", "delimiter", "null", "header", "quote", "escape", "freeze", "encoding", "action"):
            raise SqlError("42601", f'option "{name}" not recognized', position=cursor.token.start)
        if token.upper in (",", ")"):
            value = ""
        elif token.kind == "string":
            value = cursor.advance().string()
        elif token.kind == "number":
            value = cursor.advance().text
        else:
            value = folded(cursor.identifier())
        if name in ("delimiter", "null", "quote", "escape", "format", "encoding", "action") and token.upper in (",", ")"):
            raise SqlError("42601", f"{name} requires a parameter")
        self._give(name, value)

    def _old_option(self) -> bool:
        """Parse one option of the form before PostgreSQL 9; False if none follows."""
        cursor = self._cursor
        word = cursor.token.upper
        match word:
            case "BINARY" | "CSV":
                cursor.advance()
                self._give("format", word.lower())
            case "HEADER" | "FREEZE":
                cursor.advance()
                self._give(word.lower(), "")
            case "DELIMITER" | "NULL" | "QUOTE" | "ESCAPE":
                cursor.advance()
                cursor.accept("AS")
                self._give(word.lower(), self._string())
            case "ENCODING":
                cursor.advance()
                self._give("encoding", self._string())
            case "FORCE":
                cursor.advance()
                self._old_force()
            case _:
                return False
        return True

    def _old_force(self) -> None:
        cursor = self._cursor
        if cursor.accept("QUOTE"):
            self._give("force_quote", None if cursor.accept("*") else tuple(self._old_columns()))
        elif cursor.accept("NOT", "NULL"):
            self._give("force_not_null", tuple(self._old_columns()))
        else:
            cursor.expect("NULL")
            self._give("force_null", tuple(self._old_columns()))

    def _old_columns(self) -> list[str]:
        names = [folded(self._cursor.identifier())]
        while self._cursor.accept(","):
            names.append(folded(self._cursor.identifier()))
        return names


def _checked(given: dict[str, str | tuple[str, ...] | None], *, is_from: bool) -> CopyOptions:
    """The options with their defaults, after PostgreSQL's checks."""
    copy_format = _one_of(CopyFormat, "format", given.get("format", "text"))
    action = _one_of(CopyAction, "action", given.get("action", "insert"))
    if "action" in given and not is_from:
        raise SqlError("0A000", "COPY action only available using COPY FROM")
    _check_encoding(given.get("encoding"))
    if _truth("freeze", given.get("freeze", "false")) and not is_from:
        raise SqlError("0A000", "COPY freeze only available using COPY FROM")
    header = _header(given.get("header", "false"), is_from=is_from)
    is_csv = copy_format is CopyFormat.CSV
    if copy_format is CopyFormat.BINARY:
        _check_binary(given, header)
    quote_mark = str(given.get("quote", '"'))
    options = CopyOptions(
        copy_format,
        str(given.get("delimiter", "," if is_csv else "\t")),
        str(given.get("null", "" if is_csv else "\\N")),
        header,
        quote_mark,
        str(given.get("escape", quote_mark)),
        action=action,
    )
    _check_characters(options, given)
    return _with_forced(options, given, is_from=is_from)


def _one_of(kind: type[Choice], name: str, value: object) -> Choice:
    try:
        return kind(str(value))
    except ValueError:
        raise SqlError("22023", f'COPY {name} "{value}" not recognized') from None


def _check_encoding(encoding: object) -> None:
    if encoding is None:
        return
    if str(encoding).replace("-", "").replace("_", "").lower() not in ("utf8", "unicode"):
        raise SqlError("0A000", f'encoding "{encoding}" is not available for COPY', hint="Send the data in UTF8.")


def _truth(name: str, value: object) -> bool:
    text = str(value).lower()
    if text in _FALSE:
        return False
    if text in _TRUE or text == "":
        return True
    raise SqlError("42601", f"{name} requires a Boolean value")


def _header(value: object, *, is_from: bool) -> CopyHeader:
    if str(value).lower() == "match":
        if not is_from:
            raise SqlError("0A000", 'cannot use "match" with HEADER in COPY TO')
        return CopyHeader.MATCH
    try:
        return CopyHeader.LINE if _truth("header", value) else CopyHeader.NONE
    except SqlError:
        raise SqlError("42601", 'header requires a Boolean value or "match"') from None


def _check_binary(given: dict[str, str | tuple[str, ...] | None], header: CopyHeader) -> None:
    for name in ("delimiter", "null"):
        if name in given:
            raise SqlError("42601", f"cannot specify {name.upper()} in BINARY mode")
    if header is not CopyHeader.NONE:
        raise SqlError("0A000", "cannot specify HEADER in BINARY mode")


def _check_characters(options: CopyOptions, given: dict[str, str | tuple[str, ...] | None]) -> None:
    """Check the characters that separate and quote the fields."""
    is_csv, delimiter = options.format is CopyFormat.CSV, options.delimiter
    if len(delimiter.encode()) != 1:
        raise SqlError("0A000", "COPY delimiter must be a single one-byte character")
    if delimiter in "\r\n":
        raise SqlError("22023", "COPY delimiter cannot be newline or carriage return")
    if "\r" in options.null or "\n" in options.null:
        raise SqlError("22023", "COPY null representation cannot use newline or carriage return")
    if not is_csv and delimiter in _NO_DELIMITERS:
        raise SqlError("22023", f'COPY delimiter cannot be "{delimiter}"')
    for name in ("quote", "escape"):
        if name in given and not is_csv:
            raise SqlError("0A000", f"COPY {name} available only in CSV mode")
        if is_csv and len((options.quote if name == "quote" else options.escape).encode()) != 1:
            raise SqlError("0A000", f"COPY {name} must be a single one-byte character")
    if is_csv and delimiter == options.quote:
        raise SqlError("22023", "COPY delimiter and quote must be different")
    if delimiter in options.null:
        raise SqlError("0A000", "COPY delimiter must not appear in the NULL specification")
    if is_csv and options.quote in options.null:
        raise SqlError("0A000", "CSV quote character must not appear in the NULL specification")


def _with_forced(options: CopyOptions, given: dict[str, str | tuple[str, ...] | None], *, is_from: bool) -> CopyOptions:
    """The options with the columns of FORCE_QUOTE, FORCE_NOT_NULL and FORCE_NULL."""
    for name, needs_from in (("force_quote", False), ("force_not_null", True), ("force_null", True)):
        if name not in given:
            continue
        shown = name.replace("_", " ")
        if options.format is not CopyFormat.CSV:
            raise SqlError("0A000", f"COPY {shown} available only in CSV mode")
        if needs_from is not is_from:
            raise SqlError("0A000", f"COPY {shown} only available using COPY {'FROM' if needs_from else 'TO'}")
        columns = given[name]
        if name == "force_quote":
            options = replace(options, force_quote=columns if isinstance(columns, tuple) else None)
        elif isinstance(columns, tuple):
            options = replace(options, force_not_null=columns) if name == "force_not_null" else replace(options, force_null=columns)
    return options
