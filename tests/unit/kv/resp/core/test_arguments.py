"""Numbers are read and added as Redis does it."""

from __future__ import annotations

import pytest

from triplicate.kv.resp.core.arguments import add_decimals, decimal, integer
from triplicate.kv.resp.core.command_errors import CommandError


def test_an_integer_has_one_form_and_64_bits() -> None:
    assert [integer(word) for word in (b"0", b"-1", b"9223372036854775807", b"-9223372036854775808")] == [0, -1, 2**63 - 1, -(2**63)]
    for word in (b"", b"+1", b"01", b"-0", b" 1", b"1_0", b"1.0", b"9223372036854775808", "١".encode()):
        with pytest.raises(CommandError, match="not an integer"):
            integer(word)


@pytest.mark.parametrize(
    ("one", "other", "total"),
    [
        (b"0.1", b"0.2", b"0.3"),
        (b"10.50", b"0.1", b"10.6"),
        (b"5.0e3", b"2.0e2", b"5200"),
        (b"-5", b"5", b"0"),
        (b"1e-5", b"0", b"0.00001"),
        (b"3", b"-5.5", b"-2.5"),
        (b"100", b"0", b"100"),
    ],
)
def test_decimal_numbers_are_added_with_17_digits(one: bytes, other: bytes, total: bytes) -> None:
    assert add_decimals(decimal(one), decimal(other)) == total


def test_numbers_that_are_none_or_too_large_are_refused() -> None:
    for word in (b"nan", b"inf", b"1e", b"", b"0x1", b"1" * 500, b"1e9999"):
        with pytest.raises(CommandError, match="not a valid float"):
            decimal(word)
    with pytest.raises(CommandError, match="NaN or Infinity"):
        add_decimals(decimal(b"1e308"), decimal(b"9e308"))
