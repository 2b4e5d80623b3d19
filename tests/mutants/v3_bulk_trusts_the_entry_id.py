"""A run of version-3 adds ignores the frame's entry id where it differs from the entry's own, so the answer names another add."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.wire.v3 import bulk

TESTS = ["tests/unit/wire/v3/test_bulk.py::test_a_run_ends_where_something_else_begins"]


class Anything(bytes):
    """Equal to any bytes."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = bytes.__hash__


def apply(patch: Callable[[object, str, object], None]) -> None:
    right = bulk._add_struct

    def careless(*widths: int) -> Callable[[bytes, int], tuple[Any, ...]]:
        unpack = right(*widths)

        def read(buffer: bytes, position: int) -> tuple[Any, ...]:
            found = unpack(buffer, position)
            return (*found[:4], Anything(found[4]), *found[5:])

        return read

    patch(bulk, "_add_struct", careless)
