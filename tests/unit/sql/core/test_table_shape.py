"""The tables in the header of a batch, which are remembered in both directions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from triplicate.sql.core.binary import write_varint
from triplicate.sql.core.table_shape import TableShape, decode_tables, encode_table


def dictionary(count: int) -> tuple[bytes, tuple[TableShape, ...]]:
    """A dictionary of tables and its bytes."""
    shapes = tuple(TableShape(f"table {number}", ("id", "v" * 100), ("INTEGER", ""), (0,), 0) for number in range(count))
    out = bytearray()
    write_varint(out, count)
    for shape in shapes:
        out += encode_table(shape)
    return bytes(out), shapes


def parts(data: bytes) -> Iterator[bytes]:
    yield from (data[:length] for length in range(len(data)))
    yield data + b"\0"


@pytest.mark.parametrize("count", [0, 1, 3, 1000])
def test_tables_are_read_as_they_were_written(count: int) -> None:
    data, shapes = dictionary(count)
    assert decode_tables(data) == shapes
    assert decode_tables(bytes(data)) == shapes


def test_tables_of_usual_batches_are_remembered_and_very_many_are_not() -> None:
    small, large = dictionary(3)[0], dictionary(1000)[0]
    assert decode_tables(small) is decode_tables(bytes(bytearray(small)))
    assert decode_tables(large) is not decode_tables(large)


def test_damaged_tables_are_refused_each_time() -> None:
    data, _ = dictionary(2)
    for damaged in parts(data):
        for _ in range(2):
            with pytest.raises((ValueError, IndexError)):
                decode_tables(damaged)


def test_shapes_of_one_name_and_width_differ_by_their_columns() -> None:
    one, other = (TableShape("t", ("id", name), ("INTEGER", "")) for name in "ab")
    assert hash(one) == hash(other)
    assert len({one, other}) == 2
    assert encode_table(one) != encode_table(other)
