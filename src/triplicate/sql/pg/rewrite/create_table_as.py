"""CREATE TABLE AS: the columns have the types of the query's results, and the query is translated as in an INSERT. Pure.

SQLite's CREATE TABLE AS would run the query with SQLite's meaning, and reduce a column's type to its affinity.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from triplicate.errors import SqlError
from triplicate.sql.core.declared_types import Kind, parse_declared
from triplicate.sql.core.interface import Column
from triplicate.sql.core.lexer import Statement, quote
from triplicate.sql.pg.ddl.column_types import SERIALS
from triplicate.sql.pg.ddl.parts import at, closing, past_words, split
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import declared_name

_PLAIN = re.compile(r"\w+(?: \w+)*(?:\([\d ,]+\))?(?: \w+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """The parts of a CREATE TABLE AS. `head` is the text before the columns. `columns` are the names that it gives to the first columns."""

    head: str
    table: str
    columns: tuple[str, ...]
    query: str

    def definition(self, columns: Sequence[tuple[str, str]]) -> str:
        """The engine's statement without its query; the INSERT follows it.

        Args:
            columns: (name, declared type) of each.

        Raises:
            SqlError: 42601 for more names than columns, 42701 for two columns with one name.
        """
        if len(self.columns) > len(columns):
            raise SqlError("42601", "too many column names were specified")
        names = [name for name, _ in columns]
        seen: set[str] = set()
        for name in names:
            if name.lower() in seen:
                raise SqlError("42701", f'column "{name}" specified more than once')
            seen.add(name.lower())
        return f"{self.head} ({', '.join(f'{quote(name)} {declared}'.rstrip() for name, declared in columns)}) AS "

    def insert(self, columns: Sequence[tuple[str, str]]) -> str:
        """PostgreSQL's statement that fills the table."""
        return f"INSERT INTO {quote(self.table)} ({', '.join(quote(name) for name, _ in columns)}) {self.query}"

    def named(self, columns: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """The columns (name, declared type), with the statement's names for them."""
        return [(self.columns[index] if index < len(self.columns) else name, kind) for index, (name, kind) in enumerate(columns)]


def table_query(statement: Statement) -> CreateTableAs | None:
    """The parts of a CREATE TABLE AS; None for any other statement. Raises SqlError 42601 for column types."""
    sql, tokens = statement.sql, statement.tokens
    if [token.upper for token in tokens[:2]] != ["CREATE", "TABLE"]:
        return None
    index = past_words(tokens, 2, "IF", "NOT", "EXISTS")
    name, names = at(tokens, index), index + 1
    stop = closing(tokens, names) + 1 if at(tokens, names).text == "(" else names
    if at(tokens, stop).upper != "AS" or name.name is None or stop + 1 >= len(tokens):
        return None
    parts = split(tokens[names + 1 : stop - 1]) if stop > names else []
    if any(len(part) != 1 or part[0].name is None for part in parts):
        raise SqlError("42601", "CREATE TABLE AS accepts column names without types only")
    listed = tuple(part[0].name or "" for part in parts)
    return CreateTableAs(sql[: name.end], name.name, listed, sql[tokens[stop + 1].start : tokens[-1].end])


def column_type(column: Column, translated: int | None, *, is_exact: bool) -> str:
    """The declared type of a query's column; empty if it is undetermined.

    Args:
        column: as SQLite describes it. translated: the type that the translation has determined, or None.
        is_exact: whether the result's column is a table's column, with its length or precision.
    """
    declared = column.declared_type or ""
    if declared and is_exact and _PLAIN.fullmatch(declared):
        kind = parse_declared(declared).kind
        return "BIGINT" if kind is Kind.INTEGER and declared.upper() in SERIALS else declared
    oid = translated if translated is not None else types.oid_of_declared(declared) if declared else None
    return declared_name(oid)
