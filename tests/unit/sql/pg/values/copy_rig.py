"""Reads data in COPY's formats for tests, in one piece or in several."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.syntax.copy_statement import CopyFormat, CopyOptions, parse_copy
from triplicate.sql.pg.values.copy_binary import BinaryReader
from triplicate.sql.pg.values.copy_csv import CsvReader
from triplicate.sql.pg.values.copy_lines import CopyPlace
from triplicate.sql.pg.values.copy_text import TextReader

COLUMNS = ("a", "b")
Rows = list[tuple[int, list[str | bytes | None]]]
"""Line number and fields of each row."""


def options_of(text: str = "") -> CopyOptions:
    return parse_copy(statement_of(f"COPY t (a, b) FROM STDIN {text}")).options


def read(pieces: Sequence[bytes], options: CopyOptions, columns: Sequence[str] = COLUMNS, *, scans_all: bool = False) -> Rows:
    """The rows of data in pieces.

    Args:
        scans_all: whether no text is split as a whole.
    """
    place = CopyPlace("t")
    reader: BinaryReader | CsvReader | TextReader
    match options.format:
        case CopyFormat.BINARY:
            reader = BinaryReader(place, len(columns))
        case CopyFormat.CSV:
            reader = CsvReader(options, place, columns)
        case CopyFormat.TEXT:
            reader = TextReader(options, place, columns)
    if scans_all:
        reader._split = lambda text: None  # type: ignore[method-assign, union-attr]
    rows: Rows = []
    for found in (*(reader.feed(piece) for piece in pieces), reader.finish()):
        rows += [(line, list(row)) for line, row in zip(found.lines, found.rows, strict=True)]
        if found.error is not None:
            raise found.error
    return rows


def fields(data: str | bytes, text: str = "") -> list[list[str | bytes | None]]:
    """The rows of data, which are the same in one piece and byte by byte."""
    raw = data.encode() if isinstance(data, str) else data
    options = options_of(text)
    whole = read([raw], options)
    assert read([raw[at : at + 1] for at in range(len(raw))], options) == whole
    return [row for _, row in whole]


def lines(data: str, text: str = "") -> list[int]:
    return [line for line, _ in read([data.encode()], options_of(text))]
