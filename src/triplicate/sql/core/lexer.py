"""Tokens of SQL text: PostgreSQL's lexical rules for what clients send, SQLite's rules for what the engine runs and stores. Pure.

Only this module distinguishes quotes, comments and parameters. A text is split into statements, and each statement keeps its tokens,
so that all later steps read the same ones. Other modules find the meaning of a statement.
Source: PostgreSQL 15 documentation, "Lexical Structure"; SQLite's tokenizer.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice, pairwise

from triplicate.errors import SqlError


class SqlDialect(Enum):
    """Which lexical rules a text follows."""

    POSTGRESQL = "postgresql"
    """Text of a client. The names and parameters that only SQLite has (```name```, ``[name]``, ``?1``) are read too."""
    SQLITE = "sqlite"
    """Text that SQLite runs or stores. It has no dollar quotes, no escapes in strings and no comments within comments."""


_OPERATORS = (
    "!~~*", "->>", "#>>", "!~*", "!~~", "~~*", "||/", "@@@", "::", ":=", "=>", "||", "->", "#>", "@>", "<@", "<<", ">>", "<=", ">=",
    "<>", "!=", "==", "~*", "!~", "~~", "|/", "!!", "@@", "&&", "^@", "#-", "..",
)  # fmt: skip
_OPERATOR = "|".join(map(re.escape, _OPERATORS))
_POSTGRESQL = re.compile(
    r"""
      (?P<space>[ \t\n\r\f\v]+|--[^\n]*)
    | (?P<comment>/\*)
    | (?P<string>[eE]'[^'\\]*(?:(?:\\.|'')[^'\\]*)*(?:'|\Z)|(?:[uU]&|[xXbBnN])?'[^']*(?:''[^']*)*(?:'|\Z))
    | (?P<dollar>\$(?:[A-Za-z_\u0080-\U0010ffff][\w\u0080-\U0010ffff]*)?\$)
    | (?P<quoted>(?:[uU]&)?"[^"]*(?:""[^"]*)*(?:"|\Z)|`[^`]*(?:``[^`]*)*(?:`|\Z))
    | (?P<number>0[xX][0-9a-fA-F]+|(?:\d[\d_]*(?:\.(?!\.)[\d_]*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<parameter>\$[\w\u0080-\U0010ffff]+|\?\d*|[:@][A-Za-z_]\w*)
    | (?P<word>[A-Za-z_\u0080-\U0010ffff][\w$\u0080-\U0010ffff]*)
    | (?P<operator>"""
    + _OPERATOR
    + r"""|.)
    """,
    re.VERBOSE | re.DOTALL,
)
# Other white space of Unicode is a letter for SQLite; a byte order mark is space where a token may begin.
_SQLITE = re.compile(
    r"""(?P<space>[ \t\n\f\r]+|\ufeff|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$))
    |(?P<string>'[^']*(?:''[^']*)*'?)
    |(?P<quoted>"[^"]*(?:""[^"]*)*"?|`[^`]*(?:``[^`]*)*`?|\[[^\]]*\]?)
    |(?P<parameter>\?\d*|[$:@#][A-Za-z_0-9\u0080-\U0010ffff$]+)
    |(?P<word>[A-Za-z_\u0080-\U0010ffff][A-Za-z_0-9$\u0080-\U0010ffff]*)
    |(?P<number>\d[0-9A-Za-z_.]*)
    |(?P<operator>.)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_SUBSCRIPT = re.compile(r"\[\s*\d*\s*\]")
_BRACKETED = re.compile(r"\[[^\]]*(?:\]|\Z)")
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|''", re.DOTALL)
_PART = re.compile(r"'((?:[^']|'')*)'")
_ESCAPED_PART = re.compile(r"'((?:[^'\\]|\\.|'')*)'", re.DOTALL)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BEFORE_TRIGGER = frozenset(("TEMP", "TEMPORARY", "OR", "REPLACE", "CONSTRAINT"))
"""Words that may stand between CREATE and TRIGGER."""
_HEAD_WORDS = 5


class Token:
    """`kind` is string, quoted (a name), number, parameter, word or operator; `text` as written; `start`, `end` in characters.

    `upper` is the word in capitals, or the text of an operator; empty for quoted names and strings, which are never keywords.
    In SQLite's text an operator is one character, and a number may be several tokens (``.5``, ``1e-05``, ``x'00'``).
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


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement with its tokens, whose places count from the statement's own beginning."""

    sql: str
    tokens: tuple[Token, ...] = field(compare=False, repr=False)

    @property
    def first_word(self) -> str:
        """The first word in capitals; empty where the statement does not begin with a word."""
        return self.tokens[0].upper if self.tokens else ""


def statement_of(sql: str, dialect: SqlDialect = SqlDialect.POSTGRESQL) -> Statement:
    """The whole of a text as one statement."""
    return Statement(sql, tuple(tokenize(sql, dialect)))


def tokenize(sql: str, dialect: SqlDialect = SqlDialect.POSTGRESQL) -> list[Token]:
    """All tokens but white space and comments."""
    return _postgresql_tokens(sql) if dialect is SqlDialect.POSTGRESQL else sqlite_tokens(sql)


def sqlite_tokens(sql: str) -> list[Token]:
    """All tokens of a text that SQLite runs or stores, but white space and comments."""
    return list(next_sqlite_tokens(sql))


def next_sqlite_tokens(sql: str) -> Iterator[Token]:
    """As `sqlite_tokens`, one after another."""
    for match in _SQLITE.finditer(sql):
        if match.lastgroup != "space":
            yield Token(match.lastgroup or "operator", match.group(), match.start(), match.end())


def _postgresql_tokens(sql: str) -> list[Token]:
    """Comments nest, and a string constant may go on in the next line.

    Raises:
        SqlError: 42601 for a name without characters.
    """
    found: list[Token] = []
    at, size, arrays = 0, len(sql), 0
    match_at = _POSTGRESQL.match
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
            if arrays > 0 or (found and found[-1].upper == "ARRAY"):
                arrays += 1
            elif not _SUBSCRIPT.match(sql, at) or not found or found[-1].kind not in ("word", "operator", "parameter", "quoted"):
                kind = "quoted"
                bracketed = _BRACKETED.match(sql, at)
                end = bracketed.end() if bracketed else end
        elif kind == "operator" and sql[at] == "]":
            arrays = max(0, arrays - 1)
        if kind == "quoted" and sql[at:end] == '""':
            raise SqlError("42601", 'zero-length delimited identifier at or near """"', position=at + 1)
        if kind == "string" and found and _continues(sql, found[-1], at):
            before = found[-1]
            found[-1] = Token("string", sql[before.start : end], before.start, end)
        else:
            found.append(Token(kind, sql[at:end], at, end))
        at = end
    return found


def _continues(sql: str, before: Token, at: int) -> bool:
    """Whether a string constant goes on in the next line: a rule of the SQL standard."""
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


def split_statements(sql: str, dialect: SqlDialect = SqlDialect.POSTGRESQL) -> list[Statement]:
    """The statements of a text, each without its semicolon and without the space and comments around it; empty ones are left out.

    The body of CREATE TRIGGER holds semicolons of its own. It runs from BEGIN to the END that follows a semicolon; CASE … END in it
    is counted.
    """
    found = []
    for tokens in _cut(tokenize(sql, dialect)):
        start = tokens[0].start
        text = sql[start : tokens[-1].end]
        moved = [Token(token.kind, token.text, token.start - start, token.end - start) for token in tokens] if start else tokens
        found.append(Statement(text, tuple(moved)))
    return found


def _cut(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement."""
    statement: list[Token] = []
    is_in_body, cases = False, 0
    for token in tokens:
        if token.upper == ";" and not is_in_body:
            if statement:
                yield statement
            statement, cases = [], 0
            continue
        if token.upper == "BEGIN" and _is_trigger(statement):
            is_in_body = True
        elif is_in_body and token.upper == "CASE":
            cases += 1
        elif is_in_body and token.upper == "END":
            if cases:
                cases -= 1
            elif statement[-1].upper == ";":
                is_in_body = False
        statement.append(token)
    if statement:
        yield statement


def _is_trigger(tokens: Sequence[Token]) -> bool:
    words = [token.upper for token in tokens[:_HEAD_WORDS]]
    return words[:1] == ["CREATE"] and next((word for word in words[1:] if word not in _BEFORE_TRIGGER), "") == "TRIGGER"


def nested_comments(sql: str, tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Start and end of the gaps between tokens whose comments hold comments: SQLite would end those too early."""
    if sql.count("/*") < 2:
        return []
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
    """The texts between the quotes; more than one where the constant goes on in another line."""
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


def adjacent(tokens: Iterable[Token]) -> bool:
    """Whether two string constants stand side by side: SQLite would read the second one as a name."""
    return any(first.kind == second.kind == "string" for first, second in pairwise(tokens))


# Text for SQLite, and parts of SQLite's text.


def quote_string(value: str) -> str:
    """A string constant that SQLite reads.

    Raises:
        SqlError: 22021 for the character NUL, which PostgreSQL's text cannot hold.
    """
    if "\0" in value:
        raise SqlError("22021", "text cannot hold the character with number 0")
    return "'" + value.replace("'", "''") + "'"


def quote(name: str) -> str:
    """A name as SQL text."""
    return '"' + name.replace('"', '""') + '"'


def identifier(token: Token) -> str:
    """The name that a token of SQLite's text stands for: without its quotes, an unquoted word in lower case."""
    text = token.text
    if token.kind == "quoted":
        if text[0] == "[":
            return text[1:].removesuffix("]")
        return text[1:].removesuffix(text[0]).replace(text[0] * 2, text[0])
    return text.lower()


def first_words(tokens: Iterable[Token], limit: int = 8) -> list[str]:
    """The first tokens of a statement, words in capitals, everything else as written."""
    return [token.upper if token.kind == "word" else token.text for token in islice(tokens, limit)]


def parameter_markers(tokens: Iterable[Token]) -> dict[str, str]:
    """For each named parameter its name without the marker character, and with it (``'1'`` → ``'$1'``)."""
    markers: dict[str, str] = {}
    for token in tokens:
        if token.kind == "parameter" and len(token.text) > 1:
            markers.setdefault(token.text[1:], token.text)
    return markers


def parameter_numbers(tokens: Iterable[Token]) -> frozenset[int]:
    """The numbers of the parameters that are written as ``?1``."""
    return frozenset(int(token.text[1:]) for token in tokens if token.kind == "parameter" and token.text[1:].isdigit())


class ComposedText:
    """A text put together from stretches of another text and from new ones. It knows where each stretch was."""

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
