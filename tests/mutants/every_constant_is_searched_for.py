"""All constants of a statement are on the list that SQLite searches for each."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/sql/pg/translate/test_render_constants.py::test_few_constants_are_on_the_list_that_sqlite_searches"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.sql.pg.translate import render_constants

    patch(render_constants, "LISTED_MAX", 10**9)
