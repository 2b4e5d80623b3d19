"""Of several changes of a row in one batch of a change feed the first is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triplicate.spark.tables import row_changes

TESTS = [
    "tests/unit/spark/tables/test_table_writing.py::test_the_rows_of_a_change_feed_rebuild_the_table",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def first_of_each(rows: Any, made: Sequence[str], key: Sequence[str]) -> list[int]:
        found: dict[object, int] = {}
        for place, values in enumerate(zip(*(rows.column(name).to_pylist() for name in key), strict=True)):
            if made[place]:
                found.setdefault(values, place)
        return sorted(found.values())

    patch(row_changes, "_last_of_each", first_of_each)
