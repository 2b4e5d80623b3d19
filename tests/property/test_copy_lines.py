"""Any cut of COPY's data gives the same rows, and data that were written are read as the same fields."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.sql.pg.values.copy_rig import COLUMNS, options_of, read
from triplicate.errors import SqlError
from triplicate.sql.pg.syntax.copy_statement import CopyFormat, CopyOptions
from triplicate.sql.pg.values.copy_binary import HEADER, TRAILER, binary_row
from triplicate.sql.pg.values.copy_csv import CsvWriter
from triplicate.sql.pg.values.copy_text import TextWriter

TEXTS = ["", "(DELIMITER ',', NULL '')", "(DELIMITER ';', HEADER)"]
CSVS = ["CSV", "CSV HEADER", "(FORMAT csv, QUOTE '''', ESCAPE '!', DELIMITER ';', NULL 'nil')", "(FORMAT csv, ESCAPE '\\')"]
CHARACTERS = st.sampled_from("ab1\\.N\"'!,;\t\n\r\bé\x01 x")
FIELD = st.none() | st.text(CHARACTERS, max_size=6) | st.sampled_from(["\\.", "nil", "\\N", ""])
ROWS = st.lists(st.tuples(FIELD, FIELD), max_size=8)
CUTS = st.lists(st.integers(0, 400), max_size=6)
RAW = st.text(CHARACTERS, max_size=40).map(str.encode)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(places)] or [b""]


def written(rows: list[tuple[str | None, str | None]], options: CopyOptions) -> bytes:
    if options.format is CopyFormat.BINARY:
        return HEADER + b"".join(binary_row([None if field is None else field.encode() for field in row]) for row in rows) + TRAILER
    writer = CsvWriter(options, COLUMNS) if options.format is CopyFormat.CSV else TextWriter(options)
    head = writer.header(COLUMNS) if options.header.value != "none" else ""
    return (head + "".join(writer.lines(rows))).encode()


@given(ROWS, st.sampled_from([*TEXTS, *CSVS]), CUTS)
def test_what_is_written_is_read_again(rows: list[tuple[str | None, str | None]], text: str, cuts: list[int]) -> None:
    options = options_of(text)
    if options.format is CopyFormat.TEXT:
        rows = [(a, b) for a, b in rows if options.null not in (a, b) or "\\" in options.null]  # PostgreSQL writes it without a mark.
    found = read(pieces(written(rows, options), cuts), options)
    assert [tuple(row) for _, row in found] == rows


@given(ROWS, CUTS)
def test_binary_rows_are_read_again(rows: list[tuple[str | None, str | None]], cuts: list[int]) -> None:
    found = read(pieces(written(rows, options_of("BINARY")), cuts), options_of("BINARY"))
    assert [tuple(row) for _, row in found] == [tuple(None if field is None else field.encode() for field in row) for row in rows]


@example(b"\r\r\n\r", "", [2])  # A line that ends with a carriage return ends there, also before a newline.
@given(RAW, st.sampled_from([*TEXTS, *CSVS]), CUTS)
def test_any_cut_gives_the_same_rows_or_the_same_error(data: bytes, text: str, cuts: list[int]) -> None:
    def outcome(parts: list[bytes]) -> object:
        try:
            return read(parts, options_of(text))
        except SqlError as error:
            return error.sqlstate, error.message, error.context

    assert outcome(pieces(data, cuts)) == outcome([data])


FIELDS = ["1", "", '"a"', '"a,b"', '""', '"nil"', "nil", "a'b", "'x'", "\\N", "\\t", '"a""b"', "\\."]
SIMPLE = st.lists(st.sampled_from(FIELDS), min_size=1, max_size=3)


@given(st.lists(SIMPLE, max_size=8), st.sampled_from([*TEXTS, *CSVS, "(FORMAT csv, FORCE_NOT_NULL (a), FORCE_NULL (b))"]))
def test_a_text_that_is_split_as_a_whole_has_the_rows_of_a_scan(rows: list[list[str]], text: str) -> None:
    options = options_of(text)
    data = "".join(options.delimiter.join(row) + "\n" for row in rows).encode()

    def outcome(*, scans_all: bool) -> object:
        try:
            return read([data], options, scans_all=scans_all)
        except SqlError as error:
            return error.sqlstate, error.message, error.context

    assert outcome(scans_all=False) == outcome(scans_all=True)
