"""Rows of a change feed's snapshot have the version of the first transaction after it, and so no order against its changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triplicate.spark.change_feed import change_rows, change_source

TESTS = ["tests/unit/spark/change_feed/test_feed_snapshot.py::test_a_stream_begins_with_the_content_and_goes_on_with_the_changes"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    content = change_rows.Content

    def later(part: Any, names: Any, version: int, *facts: Any) -> Any:
        return content(part, names, version + 1, *facts)

    patch(change_source, "Content", later)
