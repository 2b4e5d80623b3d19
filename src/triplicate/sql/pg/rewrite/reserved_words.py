"""Quotes names that PostgreSQL allows without quotes and SQLite does not. An example is ``index``, pandas' default column. Pure.

Source: PostgreSQL 15 documentation, "SQL Key Words": any keyword may stand behind AS and behind a point, and `values`, `set` and `exists`
may be names of columns.
"""

from __future__ import annotations

import re

from triplicate.sql.core.lexer import Statement, Token, statement_of
from triplicate.sql.pg.ddl.parts import Tokens, at, closing, past_words, split

_LOWER = ("index", "transaction", "add", "alter", "drop", "commit")
_COLUMNS = ("values", "set", "exists")
_WORDS = re.compile(rf"\b(?:{'|'.join((*_LOWER, *_COLUMNS))})\b|\bas\s+[a-z]|\.\s*[a-z]", re.IGNORECASE)
_QUERY = frozenset(word.upper() for word in _LOWER)
_NAMES = {
    **dict.fromkeys(("SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "VALUES"), _QUERY),
    "CREATE": _QUERY - {"COMMIT"},
    "ALTER": frozenset(("INDEX", "TRANSACTION")),
}
"""Maps a statement's first word to the words that are never keywords in it after its first three (``CREATE UNIQUE INDEX``)."""
_HEAD = 3
_LABELS = {
    "ALL", "ALTER", "ANALYSE", "ANALYZE", "AND", "ANY", "ARRAY", "AS", "ASC", "ASYMMETRIC", "BEFORE", "BEGIN", "BETWEEN", "BOTH", "BY",
    "CASE", "CAST", "CHECK", "COLLATE", "COLUMN", "CONSTRAINT", "CREATE", "CROSS", "DEFAULT", "DEFERRABLE", "DELETE", "DESC",
    "DISTINCT", "DO", "DROP", "EACH", "ELSE", "END", "ESCAPE", "EXCEPT", "EXISTS", "FALSE", "FETCH", "FOR", "FOREIGN", "FROM", "FULL",
    "GLOB", "GRANT", "GROUP", "HAVING", "ILIKE", "IN", "INDEX", "INITIALLY", "INNER", "INSERT", "INTERSECT", "INTO", "IS", "ISNULL",
    "JOIN", "LATERAL", "LEADING", "LEFT", "LIKE", "LIMIT", "MATCH", "NATURAL", "NOT", "NOTHING", "NOTNULL", "NULL", "OF", "OFFSET",
    "ON", "ONLY", "OR", "ORDER", "OUTER", "OVERLAPS", "PLACING", "PRIMARY", "REFERENCES", "REGEXP", "RETURNING", "RIGHT", "SELECT",
    "SET", "SIMILAR", "SOME", "SYMMETRIC", "TABLE", "THEN", "TO", "TRAILING", "TRANSACTION", "TRUE", "UNION", "UNIQUE", "UPDATE",
    "USING", "VALUES", "VARIADIC", "WHEN", "WHERE", "WINDOW", "WITH",
}  # fmt: skip
"""Keywords that are quoted behind AS and behind a point."""
_ENDS = {
    "", ",", ")", ";", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "WINDOW", "FETCH",
    "OFFSET", "FOR", "ON", "RETURNING", "INTO",
}  # fmt: skip
"""Tokens behind the label of a result's column."""
_BEFORE_NAMES = {
    "SELECT", "DISTINCT", "ALL", "WHERE", "AND", "OR", "NOT", "BY", "HAVING", "SET", "ON", "WHEN", "THEN", "ELSE", "CASE", "RETURNING",
    ",", "(", ".", "=", "<", ">", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "%", "||",
}  # fmt: skip
"""Tokens behind which SET is the name of a column."""


def quote_reserved(statement: Statement) -> Statement:
    """The statement with such names in quotes."""
    sql, tokens = statement.sql, statement.tokens
    names = _NAMES.get(statement.first_word, frozenset())
    if not names or _WORDS.search(sql) is None or "TRIGGER" in [token.upper for token in tokens[1:_HEAD]]:
        return statement
    pieces: list[str] = []
    end = 0
    head = _HEAD if tokens[0].upper in ("CREATE", "ALTER") else 0
    casts: list[bool] = []
    """For each open bracket: whether it is that of a CAST, in which AS precedes a type."""
    for index in range(head, len(tokens)):
        token = tokens[index]
        if token.text == "(":
            casts.append(at(tokens, index - 1).upper == "CAST")
        elif token.text == ")" and casts:
            casts.pop()
        if token.kind == "word" and (token.upper in names or _is_name(tokens, index, in_cast=bool(casts) and casts[-1])):
            pieces += [sql[end : token.start], '"', token.text.lower(), '"']
            end = token.end
    return statement_of("".join(pieces) + sql[end:]) if pieces else statement


def _is_name(tokens: Tokens, index: int, *, in_cast: bool) -> bool:
    """Whether a keyword stands where only a name can."""
    word, before, behind = tokens[index].upper, at(tokens, index - 1), at(tokens, index + 1)
    follows = behind.upper or behind.text
    if word in _LABELS and before.text == ".":
        return behind.text != "("
    if word in _LABELS and before.upper == "AS" and not in_cast:
        return follows in _ENDS and index > _HEAD - 1
    match word:
        case "VALUES":
            return index > 0 and behind.text != "(" and before.upper != "DEFAULT"
        case "EXISTS":
            return behind.text != "(" and before.upper != "IF" and at(tokens, index - 2).upper != "IF"
        case "SET":
            return (before.upper or before.text) in _BEFORE_NAMES
    return False


def constraints_last(statement: Statement) -> Statement:
    """A CREATE TABLE with its table constraints behind the columns, as SQLite requires; any other statement as it is."""
    sql, tokens = statement.sql, statement.tokens
    kind = past_words(tokens, 1, "TEMP") if at(tokens, 1).upper == "TEMP" else 1
    if statement.first_word != "CREATE" or at(tokens, kind).upper != "TABLE":
        return statement
    opening = past_words(tokens, kind + 1, "IF", "NOT", "EXISTS")
    opening += 3 if at(tokens, opening + 1).text == "." else 1
    if at(tokens, opening).text != "(":
        return statement
    items = split(tokens[opening + 1 : closing(tokens, opening)])
    ordered = sorted(items, key=_is_constraint) if all(items) else items
    if ordered == items:
        return statement
    texts = [sql[item[0].start : item[-1].end] for item in ordered]
    return statement_of(sql[: items[0][0].start] + ", ".join(texts) + sql[items[-1][-1].end :])


def _is_constraint(item: list[Token]) -> bool:
    word, behind = item[0].upper, at(item, 1)
    if word in ("CONSTRAINT", "FOREIGN", "PRIMARY", "EXCLUDE"):
        return True
    return word in ("UNIQUE", "CHECK") and behind.text == "("
