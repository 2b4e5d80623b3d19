"""The first of equal keys of json counts, as in SQLite."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from triplicate.sql.pg.values import json_text

TESTS = ["tests/unit/sql/pg/values/test_json_text.py::test_a_part_is_as_it_is_written"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    def first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return dict(reversed(pairs))

    kept = json_text._VALUES
    patch(json_text, "_VALUES", json.JSONDecoder(object_pairs_hook=first, parse_int=kept.parse_int, parse_float=kept.parse_float))
