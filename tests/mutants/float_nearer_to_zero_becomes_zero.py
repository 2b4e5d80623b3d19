"""A text of a number that is nearer to zero than the smallest float is stored as 0."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.sql.pg.values import types

TESTS = [
    "tests/unit/sql/pg/values/test_types.py::test_a_text_that_cannot_be_kept_is_refused",
    "tests/unit/sql/pg/translate/test_translation.py::test_what_cannot_mean_the_same_is_refused",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    in_range = types.float_in_range

    def rounded(number: float, oid: int, source: object) -> float:
        return in_range(number, oid, "0" if number == 0.0 else source)

    patch(types, "float_in_range", rounded)
