"""Numbers in jsonb keep the zeros at their ends, so equal values have several texts."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

TESTS = ["tests/unit/sql/executor/test_scalars_jsonb.py::test_groups_are_those_of_equal_values"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.pg.values import json_text

    def number_text(number: Decimal | float) -> str:
        return f"{Decimal(repr(number)) if isinstance(number, float) else number:f}"

    patch(json_text, "number_text", number_text)
