"""Rows as DataRow messages one after another."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.row_encoder import RowEncoder, row_encoder
from triplicate.sql.pg.values import types


def test_rows_are_encoded_one_after_another() -> None:
    encoder = RowEncoder((types.INT4, types.TEXT, types.NUMERIC), (1, 0, 0), (-1, -1, types.typmod_of_scale(2)))
    rows = [(1, "a", 2), (None, None, None), (-3, "ü" * 300, 0.5)]
    expected: list[list[bytes | None]] = [
        [b"\0\0\0\1", b"a", b"2.00"],
        [None, None, None],
        [b"\xff\xff\xff\xfd", "ü".encode() * 300, b"0.50"],
    ]
    assert encoder.encode(rows) == b"".join(wire.data_row(fields) for fields in expected)
    assert encoder.encode([]) == b""


def test_rows_without_columns_have_no_fields() -> None:
    assert RowEncoder((), (), ()).encode([(), ()]) == wire.data_row([]) * 2


def test_a_value_that_cannot_be_sent_is_an_error() -> None:
    with pytest.raises(SqlError) as refused:
        RowEncoder((types.INT4,), (1,), ()).encode([(1,), ("x",)])
    assert refused.value.sqlstate == "22P02"


def test_an_encoder_is_made_once_for_each_shape() -> None:
    assert row_encoder((types.INT4,), (0,), ()) is row_encoder((types.INT4,), (0,), ())
    assert row_encoder((types.INT4,), (0,), ()) is not row_encoder((types.INT4,), (1,), ())
