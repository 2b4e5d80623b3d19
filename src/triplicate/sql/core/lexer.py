"""PostgreSQL's lexical rules, and beside them the names and parameters that only SQLite writes. Pure.

This module separates tokens, so that quotes, comments and parameters are never confused. Other modules decide what a statement means.
Source: PostgreSQL 15 documentation, "Lexical Structure"; SQLite's tokenizer for ``x''``, ``[name]``, ``?1``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import pairwise

from triplicate.errors import SqlError

_OPERATORS = (
    "!~~*", "->>", "#>>", "!~*", "!~~", "~~*", "||/", "@@@", "::", ":=", "=>", "||", "->", "#>", "@>", "<@", "<<", ">>", "<=", ">=",
    "<>", "!=", "==", "~*", "!~", "~~", "|/", "!!", "@@", "&&", "^@", "#-", "..",
)  # fmt: skip
_OPERATOR = "|".join(map(re.escape, _OPERATORS))
_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\n\r\f\v]+|--[^\n]*)
    | (?P<comment>/\*)
    | (?P<string>[eE]'(?:[^'\\]|\\.|'')*(?:'|\Z)|(?:[uU]&|[xXbBnN])?'(?:[^']|'')*(?:'|\Z))
    | (?P<dollar>\$(?:[A-Za-z_\u0080-\U0010ffff][\w\u0080-\U0010ffff]*)?\$)
    | (?P<quoted>(?:[uU]&)?"(?:[^"]|"")*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z))
    | (?P<number>0[xX][0-9a-fA-F]+|(?:\d[\d_]*(?:\.(?!\.)[\d_]*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<parameter>\$[\w\u0080-\U0010ffff]+|\?\d*|[:@][A-Za-z_]\w*)
    | (?P<word>[A-Za-z_\u0080-\U0010ffff][\w$\u0080-\U0010ffff]*)
    | (?P<operator>"""
    + _OPERATOR
    + r"""|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_SUBSCRIPT = re.compile(r"\[\s*\d*\s*\]")
_BRACKETED = re.compile(r"\[[^\]]*(?:\]|\Z)")
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|''", re.DOTALL)
_PART = re.compile(r"'((?:[^']|'')*)'")
_ESCAPED_PART = re.compile(r"'((?:[^'\\]|\\.|'')*)'", re.DOTALL)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Token:
    """`kind` is string, quoted (a name), number, parameter, word or operator; `text` as written; `start`, `end` in characters.

    `upper` is the word in capitals, or the text of an operator; empty for quoted names and strings, which are never keywords.
    """

    __slots__ = ("end", "kind", "start", "text", "upper")

    def __init__(self, kind: str, text: str, start: int, end: int) -> None:
        self.kind, self.text, self.start, self.end = kind, text, start, end
        self.upper = text.upper() if kind == "word" else text if kind == "operator" else ""

    def __repr__(self) -> str:
        return f"Token({self.kind}, {self.text!r}, {self.start})"

    @property
    def name(self) -> str | None:
        """The identifier this token stands for, as written, or None."""
        if self.kind == "word":
            return self.text
        if self.kind == "quoted":
            quote = self.text[0]
            inner = self.text[1:-1]
            return inner if quote == "[" else inner.replace(quote * 2, quote)
        return None

    @property
    def is_plain(self) -> bool:
        """SQLite reads this token as PostgreSQL does, as it is written."""
        return self.kind != "string" or self.text[0] in "'xX"

    def string(self) -> str:
        """The characters of a string constant.

        Raises:
            SqlError: 42601 for one without an end, 0A000 for bit strings and ``U&''``, 22021 for an escape that is no character.
        """
        return string_value(self.text)


def tokenize(sql: str) -> list[Token]:
    """All tokens but white space and comments; comments nest."""
    found: list[Token] = []
    at, size, arrays = 0, len(sql), 0
    match_at = _TOKEN.match
    while at < size:
        match = match_at(sql, at)
        assert match is not None, "the last alternative takes any character"
        kind = match.lastgroup or "operator"
        end = match.end()
        if kind == "space":
            at = end
            continue
        if kind == "comment":
            at = _comment_end(sql, at)
            continue
        if kind == "dollar":
            kind = "string"
            closing = sql.find(match.group(), end)
            end = size if closing < 0 else closing + len(match.group())
        elif kind == "operator" and sql[at] == "[":
            if _opens_array(sql, at, found, arrays):
                arrays += 1
            elif not _SUBSCRIPT.match(sql, at) or not found or found[-1].kind not in ("word", "operator", "parameter", "quoted"):
                kind = "quoted"
                bracketed = _BRACKETED.match(sql, at)
                end = bracketed.end() if bracketed else end
        elif kind == "operator" and sql[at] == "]":
            arrays = max(0, arrays - 1)
        if kind == "string" and found and _continues(sql, found[-1], at):
            before = found[-1]
            found[-1] = Token("string", sql[before.start : end], before.start, end)
        else:
            found.append(Token(kind, sql[at:end], at, end))
        at = end
    return found


def _opens_array(sql: str, at: int, found: list[Token], arrays: int) -> bool:
    return arrays > 0 or bool(found and found[-1].upper == "ARRAY")


def _continues(sql: str, before: Token, at: int) -> bool:
    """A string constant goes on in the next line: a rule of the SQL standard."""
    gap = sql[before.end : at]
    return before.kind == "string" and sql[at] == "'" and "\n" in gap and gap.isspace() and before.text[0] != "$"


def _comment_end(sql: str, start: int) -> int:
    depth, at = 0, start
    while True:
        edge = _COMMENT_EDGE.search(sql, at)
        if edge is None:
            return len(sql)
        depth += 1 if edge.group() == "/*" else -1
        at = edge.end()
        if depth == 0:
            return at


def nested_comments(sql: str) -> list[tuple[int, int]]:
    """Where comments are that hold comments, which SQLite would end too early."""
    if sql.count("/*") < 2:
        return []
    tokens = tokenize(sql)
    ends = [0, *(token.end for token in tokens)]
    starts = [*(token.start for token in tokens), len(sql)]
    found = []
    for begin, end in zip(ends, starts, strict=True):
        gap = sql[begin:end]
        if gap.count("/*") != gap.count("*/") or gap.count("/*") > 1:
            found.append((begin, end))
    return found


def string_value(text: str) -> str:
    """The characters of a string constant as it is written; see `Token.string`."""
    first = text[0]
    if first == "$":
        tag = text[: text.index("$", 1) + 1]
        if len(text) < 2 * len(tag) or not text.endswith(tag):
            raise SqlError("42601", "unterminated dollar-quoted string", hint=f"End it with {tag}.")
        return text[len(tag) : -len(tag)]
    if first in "bB":
        raise SqlError("0A000", "bit strings are not available", hint="Write a number, or bytes as '\\x…'::bytea.")
    if first in "uU":
        raise SqlError("0A000", "strings with U& are not available", hint="Write the characters themselves, or E'\\u00e4'.")
    if first in "eE":
        return "".join(_ESCAPE.sub(_escaped, part) for part in _quoted_parts(text, _ESCAPED_PART))
    return "".join(part.replace("''", "'") for part in _quoted_parts(text, _PART))


def _quoted_parts(text: str, pattern: re.Pattern[str]) -> list[str]:
    """What is between the quotes; more than one part where the constant goes on in another line."""
    parts = list(pattern.finditer(text))
    if not parts or parts[-1].end() != len(text):
        raise SqlError("42601", "unterminated quoted string")
    return [part[1] for part in parts]


def _escaped(match: re.Match[str]) -> str:
    octal, hexadecimal, short, long, letter = match.groups()
    if octal or hexadecimal:
        number = int(octal, 8) if octal else int(hexadecimal, 16)
        if not 0 < number < 0x80:
            raise SqlError(
                "22021", f"the escape {match.group()} is not a character of UTF-8", hint="Write \\u with the character's number."
            )
        return chr(number)
    if short or long:
        number = int(short or long, 16)
        if number == 0 or number > 0x10FFFF or 0xD800 <= number < 0xE000:
            raise SqlError("22021", f"the escape {match.group()} is not a character")
        return chr(number)
    return "'" if letter is None else _LETTERS.get(letter, letter)


def quote_string(value: str) -> str:
    """A string constant that SQLite reads.

    Raises:
        SqlError: 22021 for the character NUL, which PostgreSQL's text cannot hold.
    """
    if "\0" in value:
        raise SqlError("22021", "text cannot hold the character with number 0")
    return "'" + value.replace("'", "''") + "'"


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
        if token.upper == ";" and not in_body:
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


class Pieces:
    """A text put together from stretches of another and from new ones, which knows where each stretch was."""

    __slots__ = ("_origins", "_parts", "_places", "_size", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._parts: list[str] = []
        self._places: list[int] = []
        self._origins: list[int] = []
        self._size = 0

    def copy(self, start: int, end: int) -> None:
        """Append the source's characters from `start` to `end`."""
        if end > start:
            self.add(self.source[start:end], start)

    def add(self, text: str, origin: int) -> None:
        """Append a text that stands for what is at `origin` of the source."""
        if text:
            self._parts.append(text)
            self._places.append(self._size)
            self._origins.append(origin)
            self._size += len(text)

    def text(self) -> str:
        return "".join(self._parts)

    def origin(self, position: int) -> int:
        """Where in the source (from 0) the character at `position` of the text comes from."""
        index = bisect_right(self._places, position) - 1
        if index < 0:
            return 0
        within = position - self._places[index]
        part, origin = self._parts[index], self._origins[index]
        return origin + within if self.source.startswith(part, origin) else origin


def adjacent(tokens: list[Token]) -> bool:
    """Whether two string constants stand side by side, which is no SQL though SQLite takes the second for a name."""
    return any(first.kind == second.kind == "string" for first, second in pairwise(tokens))
