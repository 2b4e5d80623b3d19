"""The text of a key file."""

from __future__ import annotations

import pytest

from triplicate.errors import ConfigError
from triplicate.log.core.key_lines import HEADING, KEYS_MAXIMUM, free_key_id, key_line, parse_keys

KEY = bytes(range(32))


def test_keys_are_read_in_order_and_comments_left_out() -> None:
    text = HEADING + "\n" + key_line("b", KEY) + "  a=" + key_line("", bytes(32)).partition("=")[2] + "# end"
    assert list(parse_keys(text, "f").items()) == [("b", KEY), ("a", bytes(32))]


@pytest.mark.parametrize("line", ["a", "a = ", "a = AAAA", "= AAAA", "a b = " + "A" * 43 + "=", "a = " + "!" * 44, "a = " + "A" * 44])
def test_a_line_that_is_no_key_is_named_without_its_text(line: str) -> None:
    with pytest.raises(ConfigError, match="f, line 2: it is no key") as refusal:
        parse_keys(f"# heading\n{line}\n", "f")
    assert "AAAA" not in str(refusal.value)


def test_an_id_that_is_given_twice_and_too_many_keys_are_refused() -> None:
    with pytest.raises(ConfigError, match="key 'a' is given twice"):
        parse_keys(key_line("a", KEY) * 2, "f")
    with pytest.raises(ConfigError, match="1000 are possible"):
        parse_keys("".join(key_line(f"k{number}", KEY) for number in range(KEYS_MAXIMUM + 1)), "f")


def test_a_key_without_a_name_is_named_after_the_day() -> None:
    assert free_key_id("2026-11-26", {}) == "2026-11-26"
    assert free_key_id("2026-11-26", {"2026-11-26": KEY, "2026-11-26-2": KEY}) == "2026-11-26-3"
