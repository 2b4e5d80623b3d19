"""COPY's text format: escapes, line ends, the end marker and the header, as PostgreSQL 15 reads and writes them."""

from __future__ import annotations

import pytest

from tests.unit.sql.pg.values.copy_rig import fields, lines, options_of, read
from triplicate.errors import SqlError
from triplicate.sql.pg.values.copy_lines import ROW_BYTES_MAX
from triplicate.sql.pg.values.copy_text import TextWriter


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ("1\tx\n2\ty\n", [["1", "x"], ["2", "y"]]),
        ("1\tx", [["1", "x"]]),
        ("", []),
        ("\n", [[""]]),
        ("\t\n", [["", ""]]),
        ("1\t\\N\n", [["1", None]]),
        ("1\ta\\Nb\n", [["1", "aNb"]]),
        ("1\t\\\\N\n", [["1", "\\N"]]),
        ("\\b\\f\\n\\r\\t\\v\\\\\\q\t\\101\\x41\\x4\\7\n", [["\b\f\n\r\t\v\\q", "AA\x04\x07"]]),
        ("\\303\\251\té\n", [["é", "é"]]),
        ("a\\\tb\tc\\\nd\n", [["a\tb", "c\nd"]]),
        ("a\\\\\tb\n", [["a\\", "b"]]),
        ("a\tb\\\\\n1\t2\n", [["a", "b\\"], ["1", "2"]]),
        ("1\tx\n\\.\n2\ty\n", [["1", "x"]]),
        ("1\tx\r\n2\ty\r\n", [["1", "x"], ["2", "y"]]),
        ("1\tx\r2\ty\r", [["1", "x"], ["2", "y"]]),
        ("1\tx\r\n\\.\r\n", [["1", "x"]]),
        ("1\tx\\\ry\n", [["1", "x\ry"]]),
        ("1\tx\\", [["1", "x"]]),
        ("1\tx\\\n", [["1", "x\n"]]),
    ],
)
def test_text(data: str, rows: list[list[str | None]]) -> None:
    assert fields(data) == rows


def test_other_delimiters_and_nulls() -> None:
    assert fields("1,\\,\n,nil\n", "(DELIMITER ',', NULL 'nil')") == [["1", ","], ["", None]]
    assert fields("1,\n\\,,x\n", "(DELIMITER ',', NULL '')") == [["1", None], [",", "x"]]


def test_the_lines_are_counted_with_the_header() -> None:
    assert lines("a\tb\n1\tx\n2\ty\n", "(HEADER)") == [2, 3]
    assert fields("a\tb\n1\tx\n", "(HEADER match)") == [["1", "x"]]
    assert fields("a\tb\n", "(HEADER)") == []


@pytest.mark.parametrize(
    ("data", "sqlstate", "context", "text"),
    [
        (b"1\tx\n2\t\xff\n", "22021", "COPY t, line 2", ""),
        (b"1\tx\n2\t\0\n", "22021", "COPY t, line 2", ""),
        (b"1\tx\n2\t\\xff\n", "22021", "COPY t, line 2", ""),
        (b"1\tx\n2\t\\000\n", "22021", "COPY t, line 2", ""),
        (b"1\tx\n2\ty\r\n", "22P04", "COPY t, line 2", ""),
        (b"1\tx\r\n2\ty\n", "22P04", "COPY t, line 2", ""),
        (b"1\tx\r2\ty\n", "22P04", "COPY t, line 2", ""),
        (b"1\tx\n2\\.\n", "22P04", "COPY t, line 2", ""),
        (b"1\tx\n\\.y\n", "22P04", "COPY t, line 2", ""),
        (b"1\tx\n\\.", "22P04", "COPY t, line 2", ""),
        (b"a\n", "22P04", "COPY t, line 1", "(HEADER match)"),
        (b"a\tc\n", "22P04", "COPY t, line 1", "(HEADER match)"),
        (b"a\t\\N\n", "22P04", "COPY t, line 1", "(HEADER match)"),
    ],
)
def test_what_is_refused_names_its_line(data: bytes, sqlstate: str, context: str, text: str) -> None:
    with pytest.raises(SqlError) as refused:
        read([data], options_of(text))
    assert (refused.value.sqlstate, refused.value.context) == (sqlstate, context)


def test_a_row_is_bounded() -> None:
    with pytest.raises(SqlError) as refused:
        read([b"x" * (1024 * 1024)] * (ROW_BYTES_MAX // (1024 * 1024) + 1), options_of())
    assert refused.value.sqlstate == "54000"


def test_values_are_written_with_escapes() -> None:
    writer = TextWriter(options_of())
    assert writer.lines([("a\tb", None), ("\\N", "x\ny\r\b\f\v")]) == ["a\\tb\t\\N\n", "\\\\N\tx\\ny\\r\\b\\f\\v\n"]
    assert writer.header(["a", "b\t"]) == "a\tb\\t\n"
    assert TextWriter(options_of("(DELIMITER ',', NULL '')")).lines([("a,b", None)]) == ["a\\,b,\n"]
