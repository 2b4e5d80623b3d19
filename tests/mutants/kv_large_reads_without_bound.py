"""A read of many keys returns all their values, however large they are together."""

from __future__ import annotations

from typing import Any

TESTS = [
    "tests/unit/kv/storage/test_rocks_copy.py::test_many_values_that_are_large_together_are_refused_before_they_fill_the_memory",
]


def apply(patch: Any) -> None:
    from triplicate.kv.storage.rocks_copy import RocksCopy

    patch(RocksCopy, "get_many", lambda self, keys: [self.get(key) for key in keys])
