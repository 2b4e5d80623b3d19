"""SCAN reads a cursor of any number of digits, which Python refuses beyond 4,300: the client loses its connection."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/kv/resp/core/test_command_table.py::test_a_cursor_of_more_than_64_bits_or_of_many_digits_is_refused"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.kv.resp.core import arguments

    patch(arguments, "UNSIGNED_DIGITS_MAX", 10_000)
