"""A query that takes ten fields of a document reads it ten times."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.values import json_text

TESTS = ["tests/unit/sql/pg/values/test_json_text.py::test_many_fields_of_one_text_read_it_once"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(json_text, "_value", lambda text: json_text._VALUES.decode(text))
