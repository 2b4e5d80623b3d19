"""Rewrites CREATE TABLE of PostgreSQL to SQLite's syntax, with PostgreSQL's meaning. Pure.

Serial and identity columns become ``INTEGER PRIMARY KEY AUTOINCREMENT``, which never reuses the number of a deleted row. The columns of
any other primary key become NOT NULL, because SQLite does not imply it.
"""

from __future__ import annotations

from typing import NamedTuple

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Token
from triplicate.sql.pg.ddl.column_parser import (
    ColumnParts,
    check_references,
    identity_text,
    parse_column,
    refuse_key_options,
    rewrite_column,
)
from triplicate.sql.pg.ddl.parts import TextEdits, Tokens, at, closing, drop_schemas, past_words, refuse, split
from triplicate.sql.pg.ddl.stored_expressions import StoredExpressions, expression_of

_KEY_HINT = "make it the only column of the primary key: id BIGSERIAL PRIMARY KEY"
_STORAGE = ("FILLFACTOR", "AUTOVACUUM", "TOAST", "PARALLEL_WORKERS", "LOG_AUTOVACUUM", "USER_CATALOG_TABLE", "VACUUM")
_CONSTRAINTS = ("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "EXCLUDE", "LIKE")


def create_table(sql: str, tokens: Tokens) -> str:
    """The statement in SQLite's syntax.

    Args:
        tokens: of the statement, which begins with CREATE TABLE.

    Raises:
        SqlError: 0A000 for an unsupported feature, with its name; 42601 for a syntax error; and as `parse_column` and `rewrite_column`.
    """
    edits = TextEdits(sql)
    index = past_words(tokens, 2, "IF", "NOT", "EXISTS")
    index += 3 if at(tokens, index + 1).text == "." else 1
    columns = closing(tokens, index) + 1 if at(tokens, index).text == "(" else index
    drop_schemas(tokens[:columns] if at(tokens, columns).upper == "AS" else tokens, edits)
    if at(tokens, columns).upper == "AS":
        # The query is translated later, as the query of an INSERT is.
        _refuse_options(tokens[columns:], edits, is_query=True)
        return edits.text()
    if at(tokens, index).upper in ("OF", "PARTITION"):
        raise refuse(f"CREATE TABLE … {tokens[index].upper}", "write out its columns")
    if at(tokens, index).text != "(":
        return edits.text()
    end = closing(tokens, index)
    _refuse_options(tokens[end + 1 :], edits, is_query=False)
    tail = {token.upper for token in tokens[end + 1 :]}
    _Body(tokens[index + 1 : end], edits, without_rowid="ROWID" in tail).rewrite()
    return edits.text()


def _refuse_options(tokens: Tokens, edits: TextEdits, *, is_query: bool) -> None:
    """Rewrite the options after the columns. Storage parameters are removed, SQLite's options stay, and all others are refused."""
    words = [token.upper for token in tokens]
    if is_query:
        if words[-3:] == ["WITH", "NO", "DATA"]:
            raise refuse("CREATE TABLE AS … WITH NO DATA", "add LIMIT 0 to the query")
        if words[-2:] == ["WITH", "DATA"]:
            edits.remove(tokens[-2:])
        return
    index = 0
    while index < len(tokens):
        word, after = words[index], at(tokens, index + 1).upper
        if word == "WITH" and at(tokens, index + 1).text == "(":
            stop = closing(tokens, index + 1)
            _check_storage(tokens[index + 2 : stop])
            edits.remove(tokens[index : stop + 1])
            index = stop + 1
        elif word == "WITHOUT" and after == "OIDS":
            edits.remove(tokens[index : index + 2])
            index += 2
        elif word in ("INHERITS", "PARTITION", "TABLESPACE", "USING", "ON"):
            raise refuse({"PARTITION": "PARTITION BY", "ON": "ON COMMIT"}.get(word, word), "leave it out" if word != "INHERITS" else None)
        else:
            index += 1


def _check_storage(tokens: Tokens) -> None:
    for part in split(tokens):
        name = at(part, 0).upper
        if not name.startswith(_STORAGE):
            raise refuse(f"the storage parameter {at(part, 0).text}", "leave it out")


class _TableKey(NamedTuple):
    """A PRIMARY KEY that is a table constraint."""

    tokens: list[Token]
    name: str | None
    """Of the constraint."""
    columns: list[str]


class _Body:
    """The columns and constraints between the brackets of CREATE TABLE."""

    def __init__(self, tokens: Tokens, edits: TextEdits, *, without_rowid: bool) -> None:
        self._edits = edits
        self._without_rowid = without_rowid
        self._items = split(tokens)
        self._constraints: list[list[Token]] = []
        self._columns: list[ColumnParts] = []
        for item in self._items:
            if at(item, 0).upper in _CONSTRAINTS and not self._is_column(item):
                self._constraints.append(item)
            else:
                self._columns.append(parse_column(item))

    @staticmethod
    def _is_column(item: list[Token]) -> bool:
        """Whether the item is a column with the name LIKE or EXCLUDE, which SQLite allows: ``like TEXT``."""
        return item[0].upper in ("LIKE", "EXCLUDE") and at(item, 1).upper in ("TEXT", "INTEGER", "INT", "BOOLEAN")

    def rewrite(self) -> None:
        columns = [(column.name, "BIGINT" if column.is_identity else column.declared) for column in self._columns]
        expressions = StoredExpressions(columns)
        for item in self._constraints:
            self._check(item, expressions)
        identities = [column for column in self._columns if column.is_identity]
        key = self._table_key()
        if len(identities) > 1:
            raise refuse(f'a second serial or identity column ("{identities[1].name}")', "declare one such column")
        for column in self._columns:
            if not column.is_identity:
                rewrite_column(column, self._edits, expressions)
        if identities:
            self._rewrite_identity(identities[0], key, expressions)
        else:
            self._forbid_nulls(key)

    def _check(self, item: list[Token], expressions: StoredExpressions) -> None:
        body = item[2:] if item[0].upper == "CONSTRAINT" else item
        word = at(body, 0).upper
        if word in ("LIKE", "EXCLUDE"):
            raise refuse(f"{word} in CREATE TABLE", "write out the columns" if word == "LIKE" else None)
        if word in ("PRIMARY", "UNIQUE"):
            opening = next((index for index, token in enumerate(body) if token.text == "("), None)
            if word == "UNIQUE" and at(body, 1).upper == "NULLS":
                raise refuse("UNIQUE NULLS [NOT] DISTINCT of a table", "leave NULLS DISTINCT out: NULLs are always distinct")
            if opening is not None:
                refuse_key_options(body[closing(body, opening) + 1 :])
        if word == "FOREIGN":
            check_references(body)
        if word == "CHECK":
            if [token.upper for token in body[-2:]] == ["NO", "INHERIT"]:
                raise refuse("NO INHERIT", "leave it out: there are no inherited tables")
            expressions.rewrite(expression_of(body), self._edits, is_condition=True)

    def _table_key(self) -> _TableKey | None:
        for item in self._constraints:
            named = item[0].upper == "CONSTRAINT"
            body = item[2:] if named else item
            if at(body, 0).upper == "PRIMARY" and at(body, 2).text == "(":
                columns = [at(part, 0).name or "" for part in split(body[3 : closing(body, 2)])]
                return _TableKey(item, item[1].text if named else None, columns)
        return None

    def _rewrite_identity(self, column: ColumnParts, key: _TableKey | None, expressions: StoredExpressions) -> None:
        column_key = column.clause("PRIMARY KEY")
        name: str | None = None
        if self._without_rowid:
            raise refuse(f'serial or identity column "{column.name}" of a table WITHOUT ROWID', "leave WITHOUT ROWID out")
        if column_key is not None:
            name = column_key.tokens[1].text if column_key.tokens[0].upper == "CONSTRAINT" else None
        elif key is not None and [name.lower() for name in key.columns] == [column.name.lower()]:
            name = key.name
            self._remove(key.tokens)
        else:
            raise refuse(f'serial or identity column "{column.name}" that is not the primary key', _KEY_HINT)
        self._edits.replace_tokens(column.tokens, identity_text(column, name, self._edits, expressions))

    def _remove(self, item: list[Token]) -> None:
        """Remove a constraint and one of the commas beside it."""
        index = next(i for i, other in enumerate(self._items) if other is item)
        if index > 0:
            self._edits.replace(self._items[index - 1][-1].end, item[-1].end, "")
        elif len(self._items) > 1:
            self._edits.replace(item[0].start, self._items[1][0].start, "")

    def _forbid_nulls(self, key: _TableKey | None) -> None:
        names = {name.lower() for name in key.columns} if key is not None else set()
        for column in self._columns:
            column_key = column.clause("PRIMARY KEY")
            if column_key is None and column.name.lower() not in names:
                continue
            descends = column_key is not None and any(token.upper == "DESC" for token in column_key.tokens)
            is_rowid = column.is_rowid and not descends and (column_key is not None or len(names) == 1)
            if column.clause("NULL") is not None:
                raise SqlError("42601", f'conflicting NULL/NOT NULL declarations for column "{column.name}"')
            if column.clause("NOT NULL") is None and not (is_rowid and not self._without_rowid):
                self._edits.insert(column.text_position(), " NOT NULL")
