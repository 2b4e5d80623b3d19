"""jsonb accepts characters that no text can hold."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.values import json_text

TESTS = ["tests/unit/sql/pg/values/test_json_text.py::test_jsonb_has_no_characters_that_text_cannot_hold"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(json_text, "_checked", lambda text: text)
