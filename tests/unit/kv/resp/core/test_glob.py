"""Patterns of keys mean what they mean in Redis, and no pattern takes long."""

from __future__ import annotations

import time

import pytest

from triplicate.kv.resp.core.command_errors import CommandError
from triplicate.kv.resp.core.glob import PATTERN_BYTES_MAX, Glob


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        (b"*", [b"", b"a", b"a\nb"], []),
        (b"", [b""], [b"a"]),
        (b"h?llo", [b"hello", b"h\nllo"], [b"hllo", b"heello"]),
        (b"h*llo", [b"hllo", b"heeello"], [b"hell", b"xhllo"]),
        (b"h[ae]llo", [b"hello", b"hallo"], [b"hillo"]),
        (b"h[^e]llo", [b"hallo"], [b"hello"]),
        (b"h[b-a]llo", [b"hallo", b"hbllo"], [b"hello"]),
        (b"[a-c\\]]", [b"b", b"]"], [b"d", b"\\"]),
        (b"a\\*b", [b"a*b"], [b"axb"]),
        (b"*ab*ab", [b"abab", b"xabyab"], [b"ab", b"aba"]),
        (b"a**b", [b"ab", b"axb"], [b"a"]),
        (b"*.*", [b".", b"a.b"], [b"ab"]),
        (b"[", [], [b"[", b"a"]),
        (b"a[b", [b"ab"], [b"a["]),
        (b"\xff*", [b"\xff", b"\xffa"], [b"a\xff"]),
    ],
)
def test_a_pattern_fits_what_it_fits_in_redis(pattern: bytes, fitting: list[bytes], others: list[bytes]) -> None:
    glob = Glob(pattern)
    assert [key for key in [*fitting, *others] if glob.matches(key)] == fitting
    assert all(key.startswith(glob.prefix) for key in fitting)


def test_the_beginning_of_all_matches_is_known() -> None:
    assert [Glob(each).prefix for each in (b"user:*", b"a\\*b", b"a?b", b"[a]b", b"*")] == [b"user:", b"a*b", b"a", b"", b""]


def test_no_pattern_takes_long() -> None:
    glob = Glob(b"*a" * 500 + b"b")
    began = time.process_time()
    assert not glob.matches(b"a" * 4096)
    assert time.process_time() - began < 1.0


def test_a_long_pattern_is_refused() -> None:
    with pytest.raises(CommandError):
        Glob(b"a" * (PATTERN_BYTES_MAX + 1))
