"""The rows of INSERT as ``pg_dump --inserts`` writes them: constants only. They become the fields that COPY would have. Pure.

Source: PostgreSQL 18, ``dumpTableData_insert`` in ``pg_dump.c``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import statement_of, string_value
from triplicate.sql.pg.ddl.parts import at, closing, split

_HEAD_CHARACTERS = 64 * 1024
"""The part of a statement in which its rows must begin."""
_VALUES = re.compile(r"""(?:[^'"]|"(?:[^"]|"")*")*?\bVALUES\b\s*+(?=\()""", re.IGNORECASE)
_CONSTANT = re.compile(
    r"""\s*+(?:
      (?P<null>NULL)\b | (?P<default>DEFAULT)\b | (?P<truth>TRUE|FALSE)\b
    | (?P<number>[-+]?(?:\d+(?:\.\d*+)?+|\.\d+)(?:[eE][-+]?\d+)?+)
    | (?P<escaped>E'(?:[^'\\]++|\\.|'')*+') | '(?P<string>(?:[^']++|'')*+)'
    )\s*+(?P<next>[,)])""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_NEXT_ROW = re.compile(r"\s*+(,)?\s*+(\()?")
_TAIL = re.compile(r"\s*+(?:ON\s+CONFLICT\s+DO\s+NOTHING\s*+)?\Z", re.IGNORECASE)
_OPTIONS: tuple[list[str], ...] = ([], ["OVERRIDING", "SYSTEM", "VALUE"], ["OVERRIDING", "USER", "VALUE"])


class Default(NamedTuple):
    """The word DEFAULT in the place of a value."""


DEFAULT = Default()
Field = str | None | Default


@dataclass(frozen=True, slots=True)
class InsertHead:
    """The part of an INSERT before its rows.

    Args:
        table: name without its schema. schema: empty for none.
        columns: None without a list of them.
        end: the position of the first row; that of the statement's end for ``DEFAULT VALUES``.
    """

    schema: str
    table: str
    columns: tuple[str, ...] | None
    end: int


class InsertRow(NamedTuple):
    """A row, and where it begins in the statement."""

    start: int
    fields: list[Field]


def parse_insert(text: str) -> InsertHead:
    """Parse the part of an INSERT before its rows.

    Raises:
        SqlError: 0A000, it is none of constants.
    """
    found = _VALUES.match(text, 0, _HEAD_CHARACTERS)
    if found is None:
        raise _unlike()
    tokens = statement_of(text[: found.end()]).tokens[:-1]
    index = 2
    schema = ""
    if at(tokens, index + 1).text == ".":
        schema, index = _name(at(tokens, index).name, at(tokens, index).kind), index + 2
    table = _name(at(tokens, index).name, at(tokens, index).kind)
    index += 1
    columns: tuple[str, ...] | None = None
    if at(tokens, index).text == "(":
        end = closing(tokens, index)
        columns = tuple(_name(at(part, 0).name, at(part, 0).kind) for part in split(tokens[index + 1 : end]))
        index = end + 1
    if not table or [token.upper for token in tokens[index:]] not in _OPTIONS:
        raise _unlike()
    return InsertHead(schema, table, columns, found.end())


def _name(name: str | None, kind: str) -> str:
    return (name or "") if kind == "quoted" else (name or "").lower()


def insert_rows(text: str, start: int) -> Iterator[InsertRow]:
    """The rows of an INSERT, one after another.

    Args:
        start: the position of the first one.

    Raises:
        SqlError: 0A000, a value is no constant; its position is that of the value. Also as `string_value`.
    """
    place = start
    while True:
        begin = place
        if text[place : place + 1] != "(":
            raise _unlike(place)
        place += 1
        fields: list[Field] = []
        more = True
        while more:
            match = _CONSTANT.match(text, place)
            if match is None:
                raise _unlike(place)
            fields.append(_field(match))
            place = match.end()
            more = match["next"] == ","
        yield InsertRow(begin, fields)
        following = _NEXT_ROW.match(text, place)
        assert following is not None, "the pattern matches an empty text"
        if following[1] is None or following[2] is None:
            break
        place = following.end() - 1
    if _TAIL.match(text, place) is None:
        raise _unlike(place)


def _field(match: re.Match[str]) -> Field:
    if match["null"]:
        return None
    if match["default"]:
        return DEFAULT
    if match["truth"]:
        return "t" if match["truth"].upper() == "TRUE" else "f"
    if match["string"] is not None:
        return match["string"].replace("''", "'")
    return match["number"] or string_value(match["escaped"])


def _unlike(place: int = 0) -> SqlError:
    return SqlError("0A000", "this INSERT is none of pg_dump's, whose rows are constants", position=place + 1)
