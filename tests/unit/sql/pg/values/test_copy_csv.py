"""COPY's CSV format: quotes, NULL, line ends within quotes and the header, as PostgreSQL 15 reads and writes them."""

from __future__ import annotations

import pytest

from tests.unit.sql.pg.values.copy_rig import fields, lines, options_of, read
from triplicate.errors import SqlError
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.pg.syntax.copy_statement import CopyOptions, parse_copy
from triplicate.sql.pg.values.copy_csv import CsvWriter

MORE_COLUMNS = ("a", "b", "c")


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ("1,x\n2,y\n", [["1", "x"], ["2", "y"]]),
        ("1,", [["1", None]]),
        ('1,""\n', [["1", ""]]),
        ('"1,2","a ""b"" c"\n', [["1,2", 'a "b" c']]),
        ('a"b,c"d,e\n', [["ab,cd", "e"]]),
        ('1,"x\ny"\n2,z\n', [["1", "x\ny"], ["2", "z"]]),
        ('1,"x\r\ny"\r\n2,z\r\n', [["1", "x\r\ny"], ["2", "z"]]),
        ("1,x\r2,y\r", [["1", "x"], ["2", "y"]]),
        ("1,x\n\\.\n2,y\n", [["1", "x"]]),
        ("1,\\.\n", [["1", "\\."]]),
        ('"\\.",1\n', [["\\.", "1"]]),
        ("1,\\N\n", [["1", "\\N"]]),
        ('""\n', [[""]]),
        ("\n", [[None]]),
        ("é,ü\n", [["é", "ü"]]),
    ],
)
def test_csv(data: str, rows: list[list[str | None]]) -> None:
    assert fields(data, "CSV") == rows


def test_the_options_of_quotes_and_nulls() -> None:
    assert fields("'a!'b!c!!',d\n", "(FORMAT csv, QUOTE '''', ESCAPE '!')") == [["a'b!c!", "d"]]
    assert fields('nil,"nil"\n', "(FORMAT csv, NULL 'nil')") == [[None, "nil"]]
    assert fields(',""\n', "(FORMAT csv, FORCE_NOT_NULL (a), FORCE_NULL (b))") == [["", None]]
    assert fields(",x\n", "(FORMAT csv, FORCE_NOT_NULL (a))") == [["", "x"]]


def test_line_ends_within_quotes_count_as_lines() -> None:
    assert lines('1,"x\ny"\n2,"z\nz"\n3,\n', "CSV") == [1, 3, 4]
    assert lines('a,"b\nb"\n2,z\n', "CSV HEADER") == [2]


@pytest.mark.parametrize(
    ("data", "sqlstate", "context"),
    [
        (b'1,x\n2,"y\n', "22P04", "COPY t, line 3"),
        (b"1,x\n2,y\r3\n", "22P04", "COPY t, line 2"),
        (b"1,x\r\n2,y\n", "22P04", "COPY t, line 2"),
        (b"1,x\n\\.", "22P04", "COPY t, line 2"),
        (b'1,x\n2,"\xff"\n', "22021", "COPY t, line 2"),
    ],
)
def test_what_is_refused_names_its_line(data: bytes, sqlstate: str, context: str) -> None:
    with pytest.raises(SqlError) as refused:
        read([data], options_of("CSV"))
    assert (refused.value.sqlstate, refused.value.context) == (sqlstate, context)


def out_options(text: str) -> CopyOptions:
    return parse_copy(statement_of(f"COPY t (a, b, c) TO STDOUT {text}")).options


def test_values_are_quoted_where_they_must_be() -> None:
    writer = CsvWriter(out_options("CSV"), MORE_COLUMNS)
    assert writer.lines([("a,b", None, 'x"y'), ("", "l\nm", "\r")]) == ['"a,b",,"x""y"\n', '"","l\nm","\r"\n']
    assert writer.header(["a", "b,c"]) == 'a,"b,c"\n'
    forced = CsvWriter(out_options("(FORMAT csv, FORCE_QUOTE (b), NULL 'nil', ESCAPE '!')"), MORE_COLUMNS)
    assert forced.lines([("nil", "x", '!"')]) == ['"nil","x","!!!""\n']
    assert CsvWriter(out_options("(FORMAT csv, FORCE_QUOTE *)"), MORE_COLUMNS).lines([("1", None, "2")]) == ['"1",,"2"\n']
    assert CsvWriter(out_options("CSV"), ("a",)).lines([("\\.",), ("x\\.",)]) == ['"\\."\n', "x\\.\n"]
