"""Variable-length integers and texts of the row log."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplicate.sql.core.binary import read_bytes, read_exactly, read_text, read_varint, write_bytes, write_text, write_varint


def written(write: Callable[..., None], value: object) -> bytes:
    out = bytearray()
    write(out, value)
    return bytes(out)


@pytest.mark.parametrize(
    ("number", "encoded"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (16_384, "808001"), (2**64 - 1, "ff" * 9 + "01")],
)
def test_the_bytes_of_a_number(number: int, encoded: str) -> None:
    assert written(write_varint, number).hex() == encoded
    assert read_varint(bytes.fromhex(encoded), 0) == (number, len(encoded) // 2)


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_numbers_read_as_they_were_written_one_after_another(numbers: list[int]) -> None:
    data = b"".join(written(write_varint, number) for number in numbers)
    position, found = 0, []
    while position < len(data):
        number, position = read_varint(data, position)
        found.append(number)
    assert found == numbers


@given(st.binary(), st.text(), st.binary(max_size=3))
def test_bytes_and_texts_read_as_they_were_written(value: bytes, text: str, before: bytes) -> None:
    data = before + written(write_bytes, value) + written(write_text, text)
    found, position = read_bytes(data, len(before))
    assert (found, read_text(data, position)) == (value, (text, len(data)))


@given(st.integers(0, 2**64 - 1), st.integers(0, 9))
def test_a_number_that_is_cut_off_is_an_error(number: int, length: int) -> None:
    data = written(write_varint, number)[:-1][:length]
    with pytest.raises(IndexError):
        read_varint(data, 0)


def test_a_number_of_more_than_ten_bytes_is_an_error() -> None:
    assert read_varint(b"\x80" * 9 + b"\x01", 0) == (2**63, 10)
    with pytest.raises(ValueError, match="longer than ten bytes"):
        read_varint(b"\x80" * 10 + b"\x01", 0)


def test_a_value_that_is_cut_off_is_an_error_and_not_a_shorter_one() -> None:
    data = written(write_text, "four")
    assert read_exactly(data, 1, 4) == b"four"
    for cut in range(1, len(data)):
        with pytest.raises(ValueError, match="expected"):
            read_text(data[:cut], 0)
