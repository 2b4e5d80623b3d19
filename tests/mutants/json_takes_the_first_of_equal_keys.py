"""The first of equal keys of json counts, as in SQLite."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.values import json_text

TESTS = ["tests/unit/sql/pg/values/test_json_text.py::test_a_part_is_as_it_is_written"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    field = json_text._field

    def first(text: str, at: int, key: str) -> str | None:
        stop = text.find(",")
        return field(text[:stop] + "}", at, key) if stop > 0 and text.count('"a"') > 1 else field(text, at, key)

    patch(json_text, "_field", first)
