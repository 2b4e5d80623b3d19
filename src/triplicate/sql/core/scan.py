"""Just enough of SQL's grammar to tell statements apart: where each ends, with which words it begins, which parameters it has.

SQLite itself decides everything else. Comments, strings, quoted names and dollar parameters are skipped as SQLite skips them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Other white space of Unicode is a letter for SQLite; a byte order mark is space where a token may begin.
_TOKEN = re.compile(
    r"""(?P<space>[ \t\n\f\r]+|\ufeff|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$))
    |(?P<string>'(?:[^']|'')*'?)
    |(?P<quoted>"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?)
    |(?P<parameter>\?\d*|[$:@#][A-Za-z_0-9\u0080-\U0010ffff$]+)
    |(?P<word>[A-Za-z_\u0080-\U0010ffff][A-Za-z_0-9$\u0080-\U0010ffff]*)
    |(?P<number>\d[0-9A-Za-z_.]*)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """``word``, ``quoted`` (a name), ``string``, ``parameter``, ``number`` or ``other``."""
    text: str
    start: int
    end: int


def tokens(sql: str) -> Iterator[Token]:
    """The tokens of a text, without white space and comments."""
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or "other"
        if kind != "space":
            yield Token(kind, match.group(), match.start(), match.end())


def split(sql: str) -> list[str]:
    """The statements of a text, each without its semicolon and the space around it; empty ones are left out.

    The body of CREATE TRIGGER holds semicolons of its own: such a statement ends with ``; END``.
    """
    found: list[str] = []
    head: list[str] = []
    start: int | None = None
    last_end = 0
    previous: tuple[str, str] = ("", "")
    for token in tokens(sql):
        if token.text == ";" and token.kind == "other":
            if start is not None and _is_trigger(head) and previous != (";", "END"):
                previous = (previous[1], ";")
                last_end = token.end
                continue
            if start is not None:
                found.append(sql[start:last_end])
            start, head, previous = None, [], ("", "")
            continue
        if start is None:
            start = token.start
        if len(head) < 3:
            head.append(token.text.upper() if token.kind == "word" else token.text)
        previous = (previous[1], token.text.upper() if token.kind == "word" else "")
        last_end = token.end
    if start is not None:
        found.append(sql[start:last_end].rstrip().rstrip(";") if _is_trigger(head) else sql[start:last_end])
    return found


def _is_trigger(head: list[str]) -> bool:
    words = [word for word in head if word not in ("TEMP", "TEMPORARY")]
    return words[:2] == ["CREATE", "TRIGGER"]


def first_words(sql: str, limit: int = 8) -> list[str]:
    """The first tokens of a statement, words in upper case, names without their quotes."""
    words: list[str] = []
    for token in tokens(sql):
        if len(words) == limit:
            break
        words.append(token.text.upper() if token.kind == "word" else token.text)
    return words


def identifier(token: Token) -> str:
    """The name a token stands for: quotes taken away, an unquoted word in lower case."""
    text = token.text
    if token.kind == "quoted":
        if text[0] == "[":
            return text[1:].removesuffix("]")
        return text[1:].removesuffix(text[0]).replace(text[0] * 2, text[0])
    return text.lower()


def parameter_markers(sql: str) -> dict[str, str]:
    """For each named parameter its name without the marker character, and with it (``'1'`` → ``'$1'``)."""
    markers: dict[str, str] = {}
    for token in tokens(sql):
        if token.kind == "parameter" and len(token.text) > 1:
            markers.setdefault(token.text[1:], token.text)
    return markers


def parameter_numbers(sql: str) -> frozenset[int]:
    """The numbers of the parameters that are written as ``?1``."""
    return frozenset(int(token.text[1:]) for token in tokens(sql) if token.kind == "parameter" and token.text[1:].isdigit())


def quote(name: str) -> str:
    """A name as SQL text."""
    return '"' + name.replace('"', '""') + '"'
