"""Just enough of SQL's lexical rules to split, classify and look into statements. Pure.

SQLite decides what a statement means; here only tokens are told apart, so that quotes, comments and parameters are never confused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
    | (?P<string>[xX]?'(?:[^']|'')*(?:'|\Z))
    | (?P<quoted>"(?:[^"]|"")*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z)|\[[^\]]*(?:\]|\Z))
    | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<parameter>\$\w+|\?\d*|[:@][A-Za-z_]\w*)
    | (?P<word>[^\W\d]\w*)
    | (?P<operator>\|\||<<|>>|<=|>=|<>|!=|==|->>|->|::|.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is string, quoted, number, parameter, word or operator; `text` as written; `start`, `end` in characters."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """The word in capitals, or the text of an operator; empty for quoted names and strings, which are never keywords."""
        return self.text.upper() if self.kind in ("word", "operator") else ""

    @property
    def name(self) -> str | None:
        """The identifier this token stands for, or None."""
        if self.kind == "word":
            return self.text
        if self.kind == "quoted":
            quote = self.text[0]
            inner = self.text[1:-1]
            return inner if quote == "[" else inner.replace(quote * 2, quote)
        return None


def tokenize(sql: str) -> list[Token]:
    """All tokens but white space and comments."""
    return [
        Token(match.lastgroup or "operator", match.group(), match.start(), match.end())
        for match in _TOKEN.finditer(sql)
        if match.lastgroup != "space"
    ]


def split_statements(sql: str) -> list[str]:
    """Cut at semicolons between statements; a trigger's body keeps its own. Empty statements vanish.

    A trigger's body runs from the BEGIN after CREATE … TRIGGER to the END that follows a semicolon; CASE … END inside is counted.
    """
    statements: list[str] = []
    start: int | None = None
    words: list[str] = []
    in_body, cases = False, 0
    previous = ""
    for token in tokenize(sql):
        if token.text == ";" and token.kind == "operator" and not in_body:
            if start is not None:
                statements.append(sql[start : token.start].rstrip())
            start, words, cases = None, [], 0
            previous = ""
            continue
        if start is None:
            start = token.start
        if len(words) < 4:
            words.append(token.upper)
        if token.upper == "BEGIN" and words[0] == "CREATE" and "TRIGGER" in words:
            in_body = True
        elif in_body and token.upper == "CASE":
            cases += 1
        elif in_body and token.upper == "END":
            if cases:
                cases -= 1
            elif previous == ";":
                in_body = False
        previous = token.text if token.kind == "operator" else ""
    if start is not None:
        tail = sql[start:].rstrip()
        if tail:
            statements.append(tail)
    return statements


def strip_catalog_prefix(sql: str) -> str:
    """Remove ``pg_catalog.`` before function names: clients write it, SQLite has no schemas of functions."""
    if "pg_catalog" not in sql:
        return sql
    tokens = tokenize(sql)
    pieces: list[str] = []
    at = 0
    for index in range(len(tokens) - 3):
        word, dot, called, bracket = tokens[index : index + 4]
        if word.upper == "PG_CATALOG" and dot.text == "." and called.kind == "word" and bracket.text == "(":
            pieces.append(sql[at : word.start])
            at = called.start
    return "".join(pieces) + sql[at:]
