"""A scan of a store ends at damage as at the end of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from triplicate.kv.storage import rocks_copy

TESTS = ["tests/unit/kv/storage/test_rocks_copy.py::test_a_scan_over_damage_fails_instead_of_ending"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def pairs(iterator: Any, kind: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        iterator.seek(kind + start)
        while iterator.valid() and iterator.key()[:1] == kind:
            yield iterator.key(), iterator.value()
            iterator.next()

    patch(rocks_copy, "_pairs", pairs)
