"""Parameters of a query that reads live tables keep their place without a number, so those behind the rows follow the rows' number."""

from __future__ import annotations

from collections.abc import Callable

TESTS = [
    "tests/unit/sql/engine/test_live_parameters.py::test_rows_are_parameters_behind_those_of_the_query",
    "tests/unit/sql/engine/test_live_parameters.py::test_parameters_have_the_numbers_that_sqlite_gives",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.engine.live_parameters import _Numbers

    patch(_Numbers, "of", lambda self, text: text[1:])
