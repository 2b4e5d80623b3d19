"""Tools for definitions: positions in tokens, and edits of the text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.core.lexer import Token, quote_string
from triplicate.sql.pg.values.types import convert_text

Tokens = Sequence[Token]
SCHEMAS = ("PUBLIC", "PG_CATALOG", "MAIN")
"""Qualifiers that are removed, because there is one schema."""
_END = Token("operator", "", 0, 0)


def refuse(subject: str, hint: str | None = None) -> SqlError:
    """The error 0A000 for a construct of PostgreSQL that is not supported. `subject` is its name, without a verb."""
    return SqlError("0A000", f"{subject} is not supported", hint=hint)


def at(tokens: Tokens, index: int) -> Token:
    """The token at an index, or an empty one beyond the ends."""
    return tokens[index] if 0 <= index < len(tokens) else _END


def closing(tokens: Tokens, opening: int) -> int:
    """The index of the bracket that matches the one at `opening`.

    Raises:
        SqlError: 42601 if none does.
    """
    depth = 0
    for index in range(opening, len(tokens)):
        depth += (tokens[index].text == "(") - (tokens[index].text == ")")
        if depth == 0:
            return index
    raise SqlError("42601", "syntax error at end of input: a bracket is not closed")


def split(tokens: Tokens) -> list[list[Token]]:
    """The parts between the commas outside brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def top_level(tokens: Tokens) -> Iterator[tuple[int, Token]]:
    """(index, token) of the tokens outside brackets, including the outermost brackets."""
    depth = 0
    for index, token in enumerate(tokens):
        depth -= token.text == ")"
        if depth == 0:
            yield index, token
        depth += token.text == "("


def past_words(tokens: Tokens, index: int, *words: str) -> int:
    """The index after the words if they are at `index`, else `index` itself."""
    present = tuple(at(tokens, index + offset).upper for offset in range(len(words)))
    return index + len(words) if present == words else index


class _Edit(NamedTuple):
    """The characters from `start` to `end` become `text`."""

    start: int
    end: int
    text: str


@dataclass(slots=True)
class TextEdits:
    """TextEdits of the text `sql`. Positions are those in the unchanged text."""

    sql: str
    edits: list[_Edit] = field(default_factory=list)

    def replace(self, start: int, end: int, text: str) -> None:
        self.edits.append(_Edit(start, end, text))

    def replace_tokens(self, tokens: Tokens, text: str) -> None:
        """Replace consecutive tokens, of which there is at least one, by a text."""
        self.replace(tokens[0].start, tokens[-1].end, text)

    def remove(self, tokens: Tokens) -> None:
        if tokens:
            self.replace_tokens(tokens, "")

    def insert(self, position: int, text: str) -> None:
        self.replace(position, position, text)

    def text(self) -> str:
        """The text with all edits. An edit inside another one is left out."""
        return self.stretch(0, len(self.sql))

    def stretch(self, start: int, end: int) -> str:
        """The part of the text between two positions, with its edits."""
        pieces: list[str] = []
        reached = start
        # Of edits with one start, insertions come first, then the longest.
        for edit in sorted(self.edits, key=lambda edit: (edit.start, edit.end != edit.start, -edit.end)):
            if edit.start >= reached and edit.end <= end:
                pieces += [self.sql[reached : edit.start], edit.text]
                reached = edit.end
        return "".join(pieces) + self.sql[reached:end]


def literal(value: Value) -> str:
    """A value as a literal of SQLite.

    Raises:
        SqlError: 22021 for text that cannot be a literal, as `quote_string`.
    """
    match value:
        case None:
            return "NULL"
        case str():
            return quote_string(value)
        case bytes():
            return f"x'{value.hex()}'"
        case _:
            return "9e999" if value == float("inf") else "-9e999" if value == float("-inf") else repr(value)


def drop_schemas(tokens: Tokens, edits: TextEdits) -> None:
    """Remove ``public.`` and ``pg_catalog.`` before names."""
    for index in range(len(tokens) - 2):
        first, dot, name = tokens[index : index + 3]
        is_alone = at(tokens, index - 1).text != "."
        if is_alone and dot.text == "." and (first.name or "").upper() in SCHEMAS and name.name is not None:
            edits.remove([first, dot])


def constant_casts(tokens: Tokens, edits: TextEdits) -> None:
    """Replace ``'constant'::type`` by its value, because plain SQLite must be able to read the text of a schema.

    Raises:
        SqlError: 0A000 for a cast of an expression that is not a constant; and as `convert_text`.
    """
    index = 0
    while index < len(tokens):
        if at(tokens, index + 1).text != "::":
            index += 1
            continue
        operand = tokens[index]
        end = index + 1
        names: list[str] = []
        while at(tokens, end).text == "::":
            first = end + 1
            end = type_end(tokens, first)
            if end == first:
                raise SqlError("42601", "a type is missing after ::")
            names.append(type_text(tokens[first:end]))
        edits.replace(operand.start, tokens[end - 1].end, _constant(operand, names))
        index = end


def _constant(operand: Token, names: list[str]) -> str:
    if operand.upper in ("NULL", "TRUE", "FALSE") or operand.kind == "number":
        return operand.text
    if operand.kind != "string":
        raise refuse("a cast with :: of an expression that is not a constant, in a definition,", "write CAST(… AS type)")
    value: Value = operand.string()
    for name in names:
        value = convert_text(str(value), name)
    return literal(value)


_TYPE_FOLLOWS = {
    "DOUBLE": ("PRECISION",),
    "CHARACTER": ("VARYING",),
    "CHAR": ("VARYING",),
    "NATIONAL": ("CHARACTER", "CHAR"),
    "BIT": ("VARYING",),
}


def type_end(tokens: Tokens, start: int) -> int:
    """The index after the type, with its arguments, that begins at `start`; `start` if none does."""
    index = start
    if at(tokens, index + 1).text == ".":
        index += 2
    if at(tokens, index).name is None:
        return start
    first = at(tokens, index).upper
    index += 1
    while at(tokens, index).upper in _TYPE_FOLLOWS.get(first, ()):
        first = at(tokens, index).upper
        index += 1
    if at(tokens, index).text == "(":
        index = closing(tokens, index) + 1
    for words in (("WITH", "TIME", "ZONE"), ("WITHOUT", "TIME", "ZONE")):
        if first in ("TIME", "TIMESTAMP"):
            index = past_words(tokens, index, *words)
    while at(tokens, index).text.startswith("["):
        index += 1
        while at(tokens, index).text and not at(tokens, index - 1).text.endswith("]"):
            index += 1
    return index


def type_text(tokens: Tokens) -> str:
    """The text of a type, with the spaces that SQLite stores."""
    text = ""
    for token in tokens:
        is_joined = not text or token.text in ("(", ")", ",", "[", "]", ".") or text[-1] in "(,[."
        text += token.text if is_joined else f" {token.text}"
    return text
