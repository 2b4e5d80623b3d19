"""Parses CREATE TABLE and CREATE INDEX for properties that SQLite's pragmas lack: constraint names, CHECK and index expressions. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from triplicate.sql.core.brackets import closing, items
from triplicate.sql.core.lexer import Token, identifier, sqlite_tokens
from triplicate.sql.core.primary_keys import is_key_index

_WIDTH = re.compile(r"\s*/\* (bigint|smallint) \*/\s*")
"""Follows the INTEGER of an identity column; see `pg.ddl.column_parser.identity_text`."""
_KINDS = {"PRIMARY": "p", "UNIQUE": "u", "FOREIGN": "f", "REFERENCES": "f", "CHECK": "c"}


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    """One CHECK; `expression` without its brackets."""

    name: str | None
    expression: str
    column: str | None
    """The column whose declaration contains it; None for a table constraint."""


@dataclass(slots=True)
class TableDefinition:
    """The constraints of one table. `names` maps (``p``, ``u`` or ``f``; column names in lower case) to the name of the constraint."""

    names: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)
    checks: list[CheckConstraint] = field(default_factory=list)
    deferred: set[tuple[str, ...]] = field(default_factory=set)
    """Columns of foreign keys that are INITIALLY DEFERRED."""
    widths: dict[str, str] = field(default_factory=dict)
    """Maps the name of an identity column, in lower case, to its declared type if that is not integer."""
    generated: dict[str, str] = field(default_factory=dict)
    """Maps the name of a generated column, in lower case, to its expression."""


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """One index. `expressions` are as written, one per key column; empty for a constraint's index. `predicate` is of a partial index."""

    expressions: tuple[str, ...] = ()
    predicate: str | None = None
    is_marked: bool = False
    """Whether its text says that it is the primary key, see `core.primary_keys`."""


def read_table(sql: str) -> TableDefinition:
    """The constraints in a CREATE TABLE; empty for any other statement."""
    definition = TableDefinition()
    tokens = sqlite_tokens(sql)
    opening = next((index for index, token in enumerate(tokens) if token.text == "("), None)
    words = [_upper(token) for token in tokens[:3]]
    if opening is None or words[:2] != ["CREATE", "TABLE"]:
        return definition
    for item in items(tokens, opening):
        _read_item(definition, item, sql)
    return definition


def read_index(sql: str) -> IndexDefinition:
    """The key expressions and the predicate of a CREATE INDEX; empty without brackets, as for an index of a constraint."""
    tokens = sqlite_tokens(sql)
    opening = next((index for index, token in enumerate(tokens) if token.text == "("), None)
    if opening is None:
        return IndexDefinition()
    expressions = tuple(_without_order(item, sql) for item in items(tokens, opening) if item)
    where = closing(tokens, opening) + 1
    if where < len(tokens) and _upper(tokens[where]) == "WHERE":
        return IndexDefinition(expressions, sql[tokens[where].end : tokens[-1].end].strip())
    return IndexDefinition(expressions, is_marked=is_key_index(sql))


def _upper(token: Token) -> str:
    return token.text.upper() if token.kind == "word" else ""


def _names_in(tokens: Sequence[Token], opening: int) -> tuple[str, ...]:
    return tuple(identifier(item[0]).lower() for item in items(tokens, opening) if item)


def _read_item(definition: TableDefinition, item: list[Token], sql: str) -> None:
    """Add the constraints of one column, or one table constraint, to the definition."""
    if not item:
        return
    first = _upper(item[0])
    column = None if first == "CONSTRAINT" or first in _KINDS else identifier(item[0])
    width = _WIDTH.fullmatch(sql[item[1].end : item[2].start]) if column is not None and len(item) > 2 else None
    if column is not None and width is not None:
        definition.widths[column.lower()] = width[1]
    name: str | None = None
    last_foreign: tuple[str, ...] | None = None
    index = 0 if column is None else 1
    while index < len(item):
        word = _upper(item[index])
        if word == "CONSTRAINT" and index + 1 < len(item):
            name = _spelled(item[index + 1])
            index += 2
            continue
        kind = _KINDS.get(word)
        bracket = next((at for at in range(index, len(item)) if item[at].text == "("), None)
        if kind == "c" and bracket is not None:
            end = closing(item, bracket)
            definition.checks.append(CheckConstraint(name, sql[item[bracket].end : item[end].start].strip(), column))
            name, index = None, end
        elif kind is not None and not (column is None and word == "REFERENCES"):
            columns = (column.lower(),) if column is not None else _names_in(item, bracket) if bracket is not None else ()
            if name is not None:
                definition.names[kind, columns] = name
            last_foreign = columns if kind == "f" else last_foreign
            name = None
        elif column is not None and word == "AS" and bracket == index + 1:
            end = closing(item, bracket)
            definition.generated[column.lower()] = sql[item[bracket].end : item[end].start].strip()
            index = end
        elif word == "DEFERRED" and last_foreign is not None:
            definition.deferred.add(last_foreign)
        elif item[index].text == "(":
            index = closing(item, index)
        index += 1


def _spelled(token: Token) -> str:
    """A constraint's name without its quotes, which keeps its case."""
    return identifier(token) if token.kind == "quoted" else token.text


def _without_order(item: Sequence[Token], sql: str) -> str:
    end = len(item)
    while end > 1 and _upper(item[end - 1]) in ("ASC", "DESC"):
        end -= 1
    return sql[item[0].start : item[end - 1].end]
