"""The values of COPY's fields are those of parameters, and errors name the line and the column."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.copy_lines import CopyPlace, CopyRows
from triplicate.sql.pg.values.copy_values import RowConverter, shown_rows

FIELDS: dict[int, list[str | None]] = {
    types.INT8: ["1", "-5", None, " 7 ", "+3", "9223372036854775807"],
    types.TEXT: ["x", "", None],
    types.FLOAT8: ["1.5", "1e3", "-0", None],
    types.BOOL: ["t", "false", "yes", "off", None],
    types.NUMERIC: ["12", "1.50", None, "1e2"],
    types.DATE: ["2024-02-29", None],
    types.TIMESTAMP: ["2024-02-29 12:00:00.5"],
    types.UUID: ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"],
    types.BYTEA: ["\\x00ff", "abc"],
    types.JSONB: ['{"a": 1}'],
}


def converted(rows: Sequence[Sequence[str | bytes | None]], oids: Sequence[int], *, is_binary: bool = False) -> list[tuple[Value, ...]]:
    converter = RowConverter(CopyPlace("t"), [f"c{index}" for index in range(len(oids))], oids, is_binary=is_binary)
    return [tuple(row) for row in converter.convert(CopyRows(rows, range(10, 10 + len(rows))))]


@given(st.lists(st.from_regex(r"-?[0-9]{0,17}(\.[0-9]{0,17})?", fullmatch=True), max_size=3))
def test_a_column_of_numerics_has_the_values_of_parameters(fields: list[str]) -> None:
    try:
        expected: object = [
            (type(value), value) for value in (types.decode_parameter(each.encode(), types.NUMERIC, False) for each in fields)
        ]
    except SqlError as error:
        expected = error.sqlstate
    try:
        found: object = [(type(value), value) for (value,) in converted([[each] for each in fields], [types.NUMERIC])]
    except SqlError as error:
        found = error.sqlstate
    assert found == expected


@pytest.mark.parametrize("oid", FIELDS)
def test_a_column_has_the_values_of_parameters(oid: int) -> None:
    fields = FIELDS[oid]
    expected = [types.decode_parameter(None if field is None else field.encode(), oid, False) for field in fields]
    assert [value for (value,) in converted([[field] for field in fields], [oid])] == expected
    assert [value for field in fields for (value,) in converted([[field]], [oid])] == expected


@pytest.mark.parametrize(
    ("field", "oid", "sqlstate"),
    [
        ("x", types.INT8, "22P02"),
        ("1_0", types.INT8, "22P02"),
        ("٣", types.INT8, "22P02"),
        ("9223372036854775808", types.INT8, "22003"),
        ("40000", types.INT2, "22003"),
        ("1_0.5", types.FLOAT8, "22P02"),
        ("1e999", types.FLOAT8, "22003"),
        ("-1e-400", types.FLOAT8, "22003"),
        ("NaN", types.FLOAT8, "0A000"),
        ("maybe", types.BOOL, "22P02"),
        ("1_000", types.NUMERIC, "22P02"),
        ("2024-02-30", types.DATE, "22008"),
    ],
)
def test_a_field_that_is_not_of_its_type_names_its_place(field: str, oid: int, sqlstate: str) -> None:
    valid = FIELDS[oid if oid in FIELDS else types.INT8][0]
    with pytest.raises(SqlError) as refused:
        converted([["k", valid], ["k", field], ["k", field + "x"]], [types.TEXT, oid])
    assert (refused.value.sqlstate, refused.value.context) == (sqlstate, f'COPY t, line 11, column c1: "{field}"')


def test_a_long_text_of_a_number_is_not_taken_for_zero() -> None:
    with pytest.raises(SqlError, match="out of range"):
        converted([["0.0"], [f"0.{'0' * 400}1"]], [types.FLOAT8])
    assert converted([["0.0"], [f"-0.{'0' * 400}"]], [types.FLOAT8]) == [(0.0,), (0.0,)]


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(SqlError, match='missing data for column "c1"') as missing:
        converted([["1", "2"], ["3"]], [types.INT8, types.INT8])
    assert (missing.value.sqlstate, missing.value.context) == ("22P04", 'COPY t, line 11: "3"')
    with pytest.raises(SqlError, match="extra data after last expected column") as extra:
        converted([["1", "2", "x" * 200]], [types.INT8, types.INT8])
    assert extra.value.context is not None
    assert extra.value.context.endswith('x..."')


def test_integers_in_binary_may_be_narrower() -> None:
    rows: list[list[bytes | None]] = [[struct.pack(">q", -1), b"x", struct.pack(">d", 0.5)], [None, None, None]]
    oids = [types.INT8, types.TEXT, types.FLOAT8]
    assert converted(rows, oids, is_binary=True) == [(-1, "x", 0.5), (None, None, None)]
    narrow = [[struct.pack(">i", 7), b"", struct.pack(">f", 0.5)], [struct.pack(">h", 8), b"", struct.pack(">d", 1.5)]]
    assert converted(narrow, oids, is_binary=True) == [(7, "", 0.5), (8, "", 1.5)]


@pytest.mark.parametrize(("field", "oid"), [(b"abc", types.INT8), (b"1", types.FLOAT8), (b"\xff", types.TEXT), (b"a\0", types.TEXT)])
def test_malformed_binary_fields_name_their_place(field: bytes, oid: int) -> None:
    with pytest.raises(SqlError) as refused:
        converted([[b"k", field]], [types.TEXT, oid], is_binary=True)
    assert refused.value.sqlstate in ("22P03", "22021")
    assert refused.value.context == "COPY t, line 10, column c1"


def test_values_are_shown_as_in_results() -> None:
    typmod = types.typmod_of_declared("numeric(10,2)")
    rows = [(1, "x", 1.5, 1, b"\1"), (None, None, None, 0, None)]
    oids = [types.INT8, types.TEXT, types.NUMERIC, types.BOOL, types.BYTEA]
    assert shown_rows(rows, oids, [-1, -1, typmod, -1, -1]) == [("1", "x", "1.50", "t", "\\x01"), (None, None, None, "f", None)]
    with pytest.raises(SqlError) as overflow:
        shown_rows([(2.0**63,)], [types.INT8], [-1])
    assert overflow.value.sqlstate == "22003"
