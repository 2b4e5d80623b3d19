"""A stream's checkpoint does not identify its table, so the stream continues with another table of the same name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from triplicate.spark.core.change_offsets import ChangesOffset

TESTS = [
    "tests/unit/spark/change_feed/test_feed.py::test_a_stream_does_not_go_on_with_another_table",
    "tests/property/test_feed_rebuild.py::test_a_table_rebuilt_from_its_feed_equals_the_table",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    encode = ChangesOffset.encode

    def nameless(self: ChangesOffset, log: str) -> dict[str, Any]:
        return encode(replace(self, table=None), log)

    patch(ChangesOffset, "encode", nameless)
